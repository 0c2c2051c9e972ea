"""Who may do what: the authorizer of this broker, which follows the access control entries of the metadata."""
