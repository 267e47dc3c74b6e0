// Package hostport parses a host with an optional port.
package hostport

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Errors of Split, which the caller completes with the option.
var (
	errHost     = errors.New("it must be a host name or an address, with an optional port")
	ErrPort     = errors.New("its port must be between 1 and 65535")
	ErrBrackets = errors.New("after the bracket that closes the address there may be a colon and a port, such as [2001:db8::1]:862")
)

// Split splits "host", "host:862", "192.0.2.1", "192.0.2.1:862", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:862",
// with or without a zone. The host has no brackets; it is not checked for being a name. Without a port, port is missing. An
// error is errHost, ErrPort or ErrBrackets.
func Split(s string, missing uint16) (host string, port uint16, err error) {
	host, text, given := s, "", false
	if _, notAddress := netip.ParseAddr(s); notAddress != nil {
		if inner, bracket := strings.CutPrefix(s, "["); bracket {
			var rest string
			var closed bool
			host, rest, closed = strings.Cut(inner, "]")
			if text, given = strings.CutPrefix(rest, ":"); !closed || rest != "" && !given {
				return "", 0, ErrBrackets
			}
		} else {
			host, text, given = strings.Cut(s, ":")
		}
	}
	if host == "" || strings.ContainsAny(host, "[]/ ") {
		return "", 0, errHost
	}
	if !given {
		return host, missing, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, ErrPort
	}
	return host, uint16(n), nil
}
