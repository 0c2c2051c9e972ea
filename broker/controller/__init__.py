"""The metadata of the cluster: the controller on its log, the log's files and snapshots, blocks of producer ids."""
