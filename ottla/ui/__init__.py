"""`ottla ui`: a page in the browser for one or several brokers. It uses nothing but their HTTP API."""
