"""Invoices for a small shop."""
