"""How engines read data sets. Each module imports its engine, so none is imported before it is used."""
