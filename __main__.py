"""`python -m deepagent` is the same program as `deepagent`."""

from .cli.main import main

if __name__ == "__main__":
    main()
