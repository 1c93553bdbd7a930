"""What people see of scenarios and runs: tables, lists, plots."""
