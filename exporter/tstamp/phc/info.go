package phc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Info is what an interface can stamp (ETHTOOL_GET_TS_INFO).
type Info struct {
	// Clock is the number of the card's clock, -1 if it has none.
	Clock int
	// Software and Hardware: it stamps in software (transmit) or hardware (both ways).
	Software, Hardware bool
	// Enabled: somebody has told the card to stamp (SIOCGHWTSTAMP).
	Enabled bool
	// AllPackets: it stamps whatever arrives. Otherwise it stamps PTP's packets
	// or some others, and those of a measurement have the kernel's stamp.
	AllPackets bool
}

// advice ends each message about an interface that cannot be used.
const advice = `, or leave "hardware" out`

// usable says what to do about an interface whose card does not stamp.
func (i Info) usable(name string) error {
	switch {
	case i.Clock < 0 || !i.Hardware:
		return fmt.Errorf(`phc: interface %s has no PTP clock, so its card cannot stamp: name the one that test packets pass`+advice, name)
	case !i.Enabled:
		return fmt.Errorf(`phc: the card of %s was not told to stamp: enable it with hwstamp_ctl -i %s -t 1 -r 1`+advice, name, name)
	}
	return nil
}

// explainAsk says what to do about an interface that cannot be asked.
func explainAsk(name string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf(`phc: interface %s does not exist: correct its name`+advice+` (%w)`, name, err)
	}
	return fmt.Errorf(`%w: name another interface`+advice, err)
}

// explainOpen says what to do about a clock that cannot be opened.
func explainOpen(name string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf(`%w (the clock of %s): let this user read it`+advice, err, name)
	}
	return fmt.Errorf(`%w (the clock of %s)`, err, name)
}
