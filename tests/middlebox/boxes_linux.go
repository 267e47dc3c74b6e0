package middlebox

import (
	"fmt"
	"strings"

	"oneway.example/tests/lab"
)

// Masquerade makes the box translate the client's address and ports to its own.
func (p *Path) Masquerade(t lab.TB) {
	t.Helper()
	p.nft(t, `table ip box {
		chain nat { type nat hook postrouting priority srcnat; oifname "OUTSIDE" masquerade; }
	}`)
}

// ClampMSS makes the box lower the MSS of each handshake.
func (p *Path) ClampMSS(t lab.TB, mss int) {
	t.Helper()
	p.nft(t, fmt.Sprintf(`table ip box {
		chain forward { type filter hook forward priority mangle; tcp flags & (syn|rst) == syn tcp option maxseg size set %d; }
	}`, mss))
}

// ProxySYN makes the box reply to SYNs itself, and pass the connection to the server when the handshake is complete; it
// passes all later segments. It announces a window scale of its configuration, which should be that of the server.
func (p *Path) ProxySYN(t lab.TB, scale int) {
	t.Helper()
	p.nft(t, fmt.Sprintf(`table ip box {
		chain raw { type filter hook prerouting priority raw; iifname "INSIDE" tcp flags syn notrack; }
		chain forward { type filter hook forward priority filter;
			ip protocol tcp ct state invalid,untracked synproxy mss 1460 wscale %d timestamp sack-perm
			ct state invalid drop
		}
	}`, scale))
	must(t, sysctl(p.Box, "netfilter/nf_conntrack_tcp_loose", "0"))
}

// WithoutTimestamps turns the timestamps of TCP off at both ends.
func (p *Path) WithoutTimestamps(t lab.TB) {
	t.Helper()
	must(t, sysctl(p.Client, "ipv4/tcp_timestamps", "0"), sysctl(p.Server, "ipv4/tcp_timestamps", "0"))
}

// nft loads rules of nftables into the box, with the names of its interfaces.
func (p *Path) nft(t lab.TB, rules string) {
	t.Helper()
	must(t, Run(p.Box, strings.NewReplacer("INSIDE", p.Inside, "OUTSIDE", p.Outside).Replace(rules), "nft", "-f", "-"))
}
