// Package hostport parses a host with an optional port, and has the default ports of the program.
package hostport

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// examples are hosts with and without a port.
var examples = fmt.Sprintf("reflector.example.net:%d, 192.0.2.1 or [2001:db8::1]:%[1]d", Reflector)

// ErrSpace is the error of an address with a space.
var ErrSpace = errors.New("it has a space in it; remove the space")

// NeedsBrackets is the error of an IPv6 address with a port.
func NeedsBrackets(address, port string) error {
	return fmt.Errorf("an IPv6 address with a port needs brackets; write \"[%s]:%s\"", address, port)
}

// Errors of Split, which the caller completes with the option. Further ones have the spelling that is probably meant.
var (
	errHost     = errors.New("it must be a host name or address with an optional port, such as " + examples)
	errPort     = errors.New("its port must be between 1 and 65535")
	errBrackets = fmt.Errorf("after the bracket that closes the address there may be a colon and a port, such as [2001:db8::1]:%d", Reflector)
	errZone     = errors.New("the interface after the % is missing; write its name, such as fe80::1%eth0")
	errIPv4     = errors.New("it must have four numbers from 0 to 255 as an IPv4 address, such as 192.0.2.1")
)

// Split splits "host", "host:862", "192.0.2.1", "192.0.2.1:862", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:862",
// with or without a zone. The host has no brackets; it is not checked for being a name, but an address must pass CheckHost. Without a port, port is missing. A text that is an
// IPv6 address, such as 2001:db8::7:862, has no port (RFC 3986 section 3.2.2 requires brackets before one).
func Split(s string, missing uint16) (host string, port uint16, err error) {
	host, text, given := s, "", false
	if !IsAddress(s) || hasSpace(s) { // a zone may be any text
		host, text, given, err = cut(s)
	}
	switch {
	case err != nil:
		return "", 0, err
	case host == "" || strings.ContainsAny(host, "[]/"):
		return "", 0, errHost
	case strings.Contains(host, ".") && strings.Trim(host, "0123456789.") == "" && !IsAddress(host):
		return "", 0, errIPv4
	}
	if a, notAddress := netip.ParseAddr(host); notAddress == nil {
		err = CheckHost(a)
	}
	if err != nil || !given {
		return host, missing, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, errPort
	}
	return host, uint16(n), nil
}

// BracketsMeant returns s with brackets if s is an IPv6 address whose last group is a default port, such as 2001:db8::7:862:
// probably an address and a port. Empty: it is none.
func BracketsMeant(s string) string {
	address, end := last(s)
	port := end == strconv.Itoa(Reflector) || end == strconv.Itoa(LoadServer)
	if !port || !IsAddress(s) || !IsAddress(address) || !strings.Contains(address, ":") {
		return ""
	}
	return "[" + address + "]:" + end
}

// cut divides what is no address.
func cut(s string) (host, port string, given bool, err error) {
	if hasSpace(s) {
		return "", "", false, ErrSpace
	}
	if _, address, isURL := strings.Cut(s, "://"); isURL {
		address, _, _ = strings.Cut(address, "/")
		return "", "", false, fmt.Errorf("it must be a host with an optional port, and no URL; write %q", address)
	}
	if strings.HasSuffix(s, "%") || strings.Contains(s, "%]") {
		return "", "", false, errZone
	}
	if inner, bracket := strings.CutPrefix(s, "["); bracket {
		host, rest, closed := strings.Cut(inner, "]")
		port, given = strings.CutPrefix(rest, ":")
		if !closed || rest != "" && !given {
			return "", "", false, errBrackets
		}
		return host, port, given, nil
	}
	if address, end := last(s); IsAddress(address) && strings.Contains(address, ":") {
		return "", "", false, NeedsBrackets(address, end)
	}
	host, port, given = strings.Cut(s, ":")
	return host, port, given, nil
}

func hasSpace(s string) bool { return strings.ContainsAny(s, " \t\n") }

// last divides at the last colon.
func last(s string) (before, after string) {
	i := strings.LastIndexByte(s, ':')
	return s[:max(i, 0)], s[i+1:]
}

// IsAddress reports whether s is an IP address, with or without a zone.
func IsAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
