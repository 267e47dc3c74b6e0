package hostport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// nsswitch configures the sources of names of other programs (nsswitch.conf(5)).
const nsswitch = "/etc/nsswitch.conf"

// LookupRemedy is what to do after a failed lookup of a name; empty: err is no such failure.
func LookupRemedy(err error) string {
	failed, ok := errors.AsType[*net.DNSError](err)
	if !ok {
		return ""
	}
	config, _ := os.ReadFile(nsswitch) // without it there are no other sources
	return lookupRemedy(failed, config)
}

// WithRemedy adds what to do to the error of a failed lookup of a name; it returns any other error as it is.
func WithRemedy(err error) error {
	if remedy := LookupRemedy(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

func lookupRemedy(failed *net.DNSError, config []byte) string {
	if !failed.IsNotFound {
		return "the DNS server of /etc/resolv.conf does not reply as it should; the name may be right"
	}
	// The resolver has the same error for a name that does not exist and for one without addresses.
	const remedy = "correct the name, or its entry in /etc/hosts or in DNS (it may have no address)"
	others := otherSources(config)
	if len(others) == 0 {
		return remedy
	}
	return fmt.Sprintf("%s: this program asks only these, and not %s of %s, which `getent hosts %s` does", remedy, strings.Join(others, ", "), nsswitch, failed.Name)
}

// otherSources are the sources of hosts that the resolver of this program does not ask.
func otherSources(config []byte) (others []string) {
	for lines := bufio.NewScanner(bytes.NewReader(config)); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		sources, found := strings.CutPrefix(strings.TrimSpace(line), "hosts:")
		if !found {
			continue
		}
		for source := range strings.FieldsSeq(withoutActions(sources)) {
			if source != "files" && source != "dns" && !slices.Contains(others, source) {
				others = append(others, source)
			}
		}
	}
	return others
}

// withoutActions is a list of sources without actions such as [NOTFOUND=return].
func withoutActions(sources string) string {
	for {
		before, rest, found := strings.Cut(sources, "[")
		if !found {
			return sources
		}
		_, after, _ := strings.Cut(rest, "]")
		sources = before + " " + after
	}
}
