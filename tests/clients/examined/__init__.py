"""What clients do in examinations of the verdict: programs that go on until they are told that it is enough."""
