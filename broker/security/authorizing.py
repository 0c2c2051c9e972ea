"""Makes the authorizer that the configuration names, and keeps its entries those of the metadata."""

from __future__ import annotations

from collections.abc import Iterator

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...coordinator.security.acls import acl_of
from ...coordinator.security.authorizer import Authorizer
from ..config.config import Config


def authorizer_of(config: Config) -> Authorizer | None:
    """Returns the authorizer that the configuration names; None if it names none."""
    if not config["authorizer.class.name"]:
        return None
    users = (user.strip() for user in config["super.users"].split(";"))
    open_ = config["allow.everyone.if.no.acl.found"].strip().lower() == "true"
    return Authorizer(filter(None, users), allows_uncovered=open_)


class AclFollower:
    """Gives an authorizer the entries of the committed metadata, and each change of them."""

    def __init__(self, authorizer: Authorizer, image: MetadataState) -> None:
        self.authorizer = authorizer
        self.image = image

    def load(self) -> None:
        for acl_id, record in self.image.acls.items():
            self.authorizer.put(acl_id, acl_of(record))

    def metadata_changed(self, delta: MetadataDelta) -> Iterator[None]:
        """Follows one entry after another, as in Kafka."""
        for acl_id in delta.acls:
            yield
            record = self.image.acls.get(acl_id)
            if record is None:
                self.authorizer.drop(acl_id)
            else:
                self.authorizer.put(acl_id, acl_of(record))
