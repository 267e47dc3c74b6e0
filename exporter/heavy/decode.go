package heavy

import (
	"reflect"
)

// Decode fills several structs from one mapping: the keys of all of them are those of the
// probe. decode is what probe.Type.New is given, which fills one struct. No key may be in
// two of them.
//
//	o, own := heavy.DefaultOptions(), defaultOptions()
//	err := heavy.Decode(decode, &o, &own)
func Decode(decode func(into any) error, into ...any) error {
	var fields []reflect.StructField
	var targets []reflect.Value
	for _, one := range into {
		v := reflect.ValueOf(one).Elem()
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
				targets = append(targets, v.Field(i))
			}
		}
	}
	all := reflect.New(reflect.StructOf(fields))
	for i, t := range targets {
		all.Elem().Field(i).Set(t)
	}
	if err := decode(all.Interface()); err != nil {
		return err
	}
	for i, t := range targets {
		t.Set(all.Elem().Field(i))
	}
	return nil
}
