package loadserver

import (
	"fmt"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
)

// Section has the key of an agent's section load_server that Options have in another form. Describe has its meaning and default.
type Section struct {
	Listen option.Listens `yaml:"listen"`
}

// Describe returns the description of the key.
func (s *Section) Describe() []option.Description {
	return []option.Description{
		option.Value(&s.Listen, option.Listens{{Port: loadcontrol.DefaultPort}}, fmt.Sprintf("Control over TLS (TCP) and test traffic (UDP) on one port number; \":%d\" means all addresses; one that this host does not have is tried again (a command ends without any).", loadcontrol.DefaultPort)).
			WithExample(fmt.Sprintf(`[":%d"]`, loadcontrol.DefaultPort)),
	}
}
