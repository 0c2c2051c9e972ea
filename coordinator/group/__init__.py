"""The group coordinator: groups of all kinds, and committed offsets, replayed from `__consumer_offsets`.

Each kind of group has a room (`classic`, `consumer`, `share`, `streams`): its group, its members, its requests, and its
records with their replay. `bridge` holds what lies between the classic and the consumer protocol. Rooms for kinds that
the broker assigns build on `modern`, `modern_replay`, `modern_pace` and `target_assignment`; `offsets` serves all.

Modules import in one direction: groups and offsets, then `state` (what handlers read and change), then the handlers,
then `routes` (tables from the kind of a group to its functions), then `shard` (what the runtime calls). Handlers never
ask for the kind of a group. What all groups answer about themselves is in the interface `group.Group`.

Another kind is a new room: a class that implements `Group`, its `REPLAYS`, which `shard` adds to its own, and rows in
the tables of `routes`. A test names each row that is missing.
"""
