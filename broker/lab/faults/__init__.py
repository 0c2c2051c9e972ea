"""Faults: rules that say which requests get which fault, how often and until when.

`matching` says which requests a rule is for, `fields` finds what a request names. An action is what happens to them:
`request_actions` delay, refuse and end exchanges, `byte_actions` damage the bytes of replies, `content_actions` change
what replies say, `inner_actions` disturb the broker itself. `rules` keeps the rules and applies them as an interceptor.
"""
