"""Shows scenarios and runs to people: tables, lists, plots, pages."""
