"""Dynamic configurations of brokers, changed while they run."""

from __future__ import annotations

from ottla.protocol import messages as m

from .world import World

SET, DELETE = 0, 1


def set_broker(world: World, name: str, value: str | None, node: str = "1", at: int = 1) -> tuple[int, str | None]:
    """Sets a key of a broker, or of all where `node` is empty, or deletes it; returns the error. `at`: the node that is
    asked.
    """
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    resource = r.AlterConfigsResource(resource_type=4, resource_name=node, configs=[change])
    (answer,) = world.at(at, "IncrementalAlterConfigs", 1, r(resources=[resource])).responses
    world.pass_ms(10)
    return answer.error_code, answer.error_message


def described_broker(world: World, name: str, node: str = "1", at: int = 1) -> tuple[int, dict[str, tuple[str, int]]]:
    """What DescribeConfigs says of a key: the error, and value and source by key."""
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=4, resource_name=node, configuration_keys=[name])
    (answer,) = world.at(at, "DescribeConfigs", 4, r(resources=[resource])).results
    return answer.error_code, {one.name: (one.value, one.config_source) for one in answer.configs}
