package hostport

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestRemedyOfALookupNamesTheSourcesThatAreNotAsked: another program of the host finds names that this one does not.
func TestRemedyOfALookupNamesTheSourcesThatAreNotAsked(t *testing.T) {
	notFound := &net.DNSError{Err: "no such host", Name: "printer", IsNotFound: true}
	for config, want := range map[string]string{
		"":                                    "correct the name, or its entry in /etc/hosts or in DNS (it may have no address)",
		"passwd: files sss\nhosts: files dns": "correct the name, or its entry in /etc/hosts or in DNS (it may have no address)",
		"hosts: files myhostname dns":         "this program asks only these, and not myhostname of /etc/nsswitch.conf, which `getent hosts printer` does",
		"hosts:\tfiles mdns4_minimal [NOTFOUND=return] dns # sss": "and not mdns4_minimal of",
		"hosts: resolve [!UNAVAIL=return] files myhostname dns":   "and not resolve, myhostname of",
		"#hosts: ldap\n hosts: files[success=return]sss dns":      "and not sss of",
	} {
		if got := lookupRemedy(notFound, []byte(config)); !strings.HasSuffix(got, want) && !strings.Contains(got, want+" ") {
			t.Errorf("%q: %s; want %q", config, got, want)
		}
	}
	if got := LookupRemedy(fmt.Errorf("dial: %w", &net.DNSError{Err: "i/o timeout", IsTimeout: true})); !strings.Contains(got, "DNS server") || strings.Contains(got, "correct the name") {
		t.Errorf("a server that does not reply: %s", got)
	}
	if got := LookupRemedy(errors.New("no lookup")); got != "" {
		t.Errorf("another error: %s", got)
	}
}
