//go:build !linux

package backtoback

import "errors"

func overVeth(*Options) (*path, error) {
	return nil, errors.New("backtoback: a veth pair needs Linux")
}
