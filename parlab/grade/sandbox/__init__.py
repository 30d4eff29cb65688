"""Where student code runs: namespaces of its own, an unprivileged user, and limits that bind."""
