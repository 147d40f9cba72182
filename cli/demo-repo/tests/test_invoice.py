import unittest

from shop.invoice import Line, tax, total


class InvoiceTest(unittest.TestCase):
    def test_total_without_cents_to_round(self):
        self.assertEqual(total([Line("Tea", 500, 2)], "0.19"), 1190)

    def test_half_cents(self):
        self.assertEqual(tax([Line("Pen", 250)], "0.19"), 48)
        self.assertEqual(tax([Line("Ink", 350)], "0.19"), 66)

    def test_lines_round_on_their_own(self):
        self.assertEqual(tax([Line("Pen", 250), Line("Ink", 350)], "0.19"), 114)


if __name__ == "__main__":
    unittest.main()
