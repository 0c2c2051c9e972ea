"""The verdict on clients, live: rules of `verdict/` over the requests and replies of the broker."""
