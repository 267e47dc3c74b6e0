package httpd

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// named refuses requests that can change something, unless their Host is an IP address, localhost, a
// name of this host or one of external. A page whose own name was made to resolve to this host
// (DNS rebinding) is of the same origin as far as a browser knows, but cannot choose the Host.
func named(external []string, next http.Handler) http.Handler {
	names := []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		first, _, _ := strings.Cut(name, ".")
		names = append(names, hostName(name), hostName(first))
	}
	for _, name := range external {
		names = append(names, hostName(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions: // RFC 9110 section 9.2.1
		default:
			host := hostName(r.Host)
			if _, err := netip.ParseAddr(host); err != nil && (host == "" || !slices.Contains(names, host)) {
				http.Error(w, fmt.Sprintf("Host is %.300q; to change something it must be an IP address, localhost, "+
					"this host's name or one of --web.external-host.", r.Host), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CheckHosts checks names of Options.ExternalHosts: without scheme, port and path.
func CheckHosts(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, ":/@ *") {
			return fmt.Errorf("httpd: %q is no host name; it must be one such as probe.example.net, without scheme and port", name)
		}
	}
	return nil
}

// hostName is the name or address of a Host, as names are compared: without port, brackets
// and last dot, in lower case.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
