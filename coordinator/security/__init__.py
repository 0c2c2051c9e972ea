"""Who may do what: access control entries, and Kafka's StandardAuthorizer over them."""
