package reflector

import (
	"fmt"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/wire/stampfmt"
)

// Section has the keys of an agent's section reflector that Options have in another form. Describe has their meanings, defaults
// and bounds.
type Section struct {
	Listen    option.Listens `yaml:"listen"`
	KeyFile   string         `yaml:"key_file"`
	RateLimit struct {
		PacketsPerSecond int `yaml:"packets_per_second"`
		Burst            int `yaml:"burst"`
	} `yaml:"rate_limit"`
}

// RateLimitKey is the key of the rate limit, Options.RatePackets.
const RateLimitKey = "rate_limit.packets_per_second"

const burstKey = "rate_limit.burst"

// minRate and maxRate are the bounds of both keys of the rate limit.
const minRate, maxRate = 1, 10_000_000

// Describe returns the descriptions of the keys.
func (s *Section) Describe() []option.Description {
	return []option.Description{
		option.Value(&s.Listen, option.Listens{{Port: stampfmt.Port}}, fmt.Sprintf("UDP addresses; one that this host does not have is tried again (a command ends without any). \":%d\" means all addresses of both families. Ports below 1024 need root or CAP_NET_BIND_SERVICE; the "+
			"standard port is %[1]d.", stampfmt.Port)).WithExample(fmt.Sprintf(`[":%d"]`, stampfmt.Port)),
		option.Text(&s.KeyFile, "Shared secrets, one a line, all accepted. To change one, add the new secret as second line everywhere, swap the lines everywhere, remove the old one. "+
			"A reload of an agent reads the file again.").WithExample("reflector.key"),
		option.Number(&s.RateLimit.PacketsPerSecond, DefaultRate, minRate, maxRate, "Limit of one source address (IPv4) or /64 (IPv6); protects this host, not the network. Known "+
			"peers keep their rate when others send from their address."),
		option.Number(&s.RateLimit.Burst, 0, minRate, maxRate, "Packets that may exceed it at once.").Unset(option.Part(burstPart) + " of {" + RateLimitKey + "}").WithExample("5000"),
	}
}

// Groups returns the description of the group of keys.
func (*Section) Groups() map[string]string {
	return map[string]string{"rate_limit": "The limit of replies to one source."}
}
