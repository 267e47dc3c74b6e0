package hostport

// Default ports. Texts, examples and checks take them from here.
const (
	// Reflector is the UDP port of a STAMP reflector (RFC 8762 section 4.1).
	Reflector = 862
	// LoadServer is the TCP port of control of a load server, and the UDP port of its test traffic; option.LoadServerPorts are those
	// after it.
	LoadServer = 8620
	// Agent is the TCP port of an agent's web server.
	Agent = "9862"
)
