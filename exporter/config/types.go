package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/alecthomas/units"
)

// Listen is an address to listen on. The zero Addr means all addresses of this
// host, of both families.
type Listen struct {
	Addr netip.Addr
	Port uint16
}

// errListen says what an address to listen on looks like.
var errListen = errors.New(`it must be an address and a port, such as ":862", "192.0.2.1:862" or "[2001:db8::1]:862"`)

// UnmarshalText reads ":port" or "address:port".
func (l *Listen) UnmarshalText(b []byte) error {
	if port, all := strings.CutPrefix(string(b), ":"); all {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return errListen
		}
		*l = Listen{Port: uint16(n)}
		return nil
	}
	addrPort, err := netip.ParseAddrPort(string(b))
	if err != nil {
		return errListen
	}
	*l = Listen{Addr: addrPort.Addr().Unmap(), Port: addrPort.Port()}
	return nil
}

// String is what UnmarshalText reads.
func (l Listen) String() string {
	if !l.Addr.IsValid() {
		return fmt.Sprintf(":%d", l.Port)
	}
	return netip.AddrPortFrom(l.Addr, l.Port).String()
}

// Bytes is an amount of data, written as "1500", "64KiB" or "10MB".
type Bytes int64

// UnmarshalText reads a whole number with an optional unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := string(text)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		*b = Bytes(n)
		return nil
	}
	n, err := units.ParseStrictBytes(s)
	if err != nil || n < 0 {
		return errors.New("it must be an amount of data, such as 1500, 64KiB or 10MB")
	}
	*b = Bytes(n)
	return nil
}

// Ratio is a part of a whole, 0 to 1, written as "0.05" or "5%".
type Ratio float64

// UnmarshalText reads a ratio or a percentage.
func (r *Ratio) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || math.IsNaN(v) || v < 0 || v > 1 {
		return errors.New("it must be between 0 and 1, or between 0% and 100%")
	}
	*r = Ratio(v)
	return nil
}
