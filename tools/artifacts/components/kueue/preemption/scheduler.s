// Empty: it lets scheduler.go declare functions without a body.
