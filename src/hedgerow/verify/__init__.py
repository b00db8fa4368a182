"""Every promise of the paper as an executable check, and broken learners that must fail them: `hedgerow verify`."""
