"""What can be done with a workspace, by kind. Each service is imported when it is first used, so that a question does not load
what only a server needs."""
