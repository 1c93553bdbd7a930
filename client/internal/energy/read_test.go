package energy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// models are those that linklab ships.
const models = "../../../profiles/energy"

func read(t *testing.T, name string) *Model {
	t.Helper()
	m, err := Read(filepath.Join(models, name+".yaml"))
	testkit.OK(t, err)
	return m
}

func TestEveryModelThatShipsIsRead(t *testing.T) {
	files, err := filepath.Glob(models + "/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d models (%v)", len(files), err)
	}
	for _, file := range files {
		m, err := Read(file)
		testkit.Holds(t, err == nil && m.Name+".yaml" == filepath.Base(file) && m.Radios[Wifi] != nil && m.Radios[LTE] != nil, file, m, err)
	}
}

func TestAllThatAModelSays(t *testing.T) {
	text := `
name: phone
device: a phone
source: nobody
description: any
base: 1 mW
phone: 1.5 mW
shared: 2.5 mW
both: -3 mW
processor: 4 mW
links:
  wifi: {active: 5mW}
  lte:
    active: 6 mW
    down: 7 mJ/Mbit
    up: 8 mJ/Mbit
    idle: 9 mW
    promotion: {power: 10 mW, time: 260 ms}
    tail: [{power: 11 mW, time: 1.5 min, state: drx}, {power: 12 mW, time: 10 s}]
fitted_to: [{publication: thesis, metrics: [energy], cells: {ts: [alg1]}}]
`
	got, err := parse("phone.yaml", []byte(text))
	want := &Model{Name: "phone", BaseMW: 1, PhoneMW: 1.5, SharedMW: 2.5, BothMW: -3, Radios: map[Kind]*Radio{
		Wifi: {ActiveMW: 5},
		LTE: {
			ActiveMW: 6, DownMJ: 7, UpMJ: 8, IdleMW: 9,
			Promotion: State{10, 260 * time.Millisecond},
			Tail:      []State{{11, 90 * time.Second}, {12, 10 * time.Second}},
		},
	}}
	testkit.Holds(t, err == nil && reflect.DeepEqual(got, want), got, err, want)
}

func TestWrongModels(t *testing.T) {
	const head = "name: a\ndevice: a\nsource: a\n"
	for text, want := range map[string]string{
		"":                    "m.yaml: the file is empty; needed: name, device, source, links",
		"[1":                  "m.yaml: line 1: ",
		"- a":                 "m.yaml:1: KEY: VALUE lines are needed; allowed: name, ",
		head:                  "m.yaml:1: links is missing; needed",
		head + "name: b":      "m.yaml:4: name stands twice",
		head + "nam: b":       `m.yaml:4: there is no key "nam"; allowed: name, device, `,
		head + "links: {}":    "m.yaml:4: links: says nothing of any link; needed: one or more of wifi, lte, ",
		head + "links: {a: }": `m.yaml:4: there is no key "a"; allowed: wifi, lte, `,
		head + "base: 1 W":    `m.yaml:4: "1 W" is no measure; allowed: 0 mW to 100000 mW`,
		head + "base: -1 mW":  `m.yaml:4: "-1 mW" is no measure; `,
		head + "base: NaN mW": `m.yaml:4: "NaN mW" is no measure; `,
		head + "base: [1 mW]": `m.yaml:4: "" is no measure; `,
		head + "name: [1]":    "m.yaml:4: name stands twice",
		"name: [1]":           "m.yaml:1: a text is needed",
		head + "links: {wifi: {promotion: {power: 1 mW}}}":                 "m.yaml:4: time is missing; needed",
		head + "links: {wifi: {promotion: {power: 1 mW, time: 11 min}}}":   `m.yaml:4: "11 min" is no time; allowed: 0 s to 10 min`,
		head + "links: {wifi: {promotion: {power: 1 mW, time: 1}}}":        `m.yaml:4: "1" is no time; `,
		head + "links: {wifi: {tail: 1}}":                                  "m.yaml:4: a list of states is needed",
		head + "both: -2 mW\nlinks: {wifi: {active: 1 mW}}":                "m.yaml: both: a further link of wifi would draw less than nothing",
		"&a name: a\ndevice: *a\nsource: a\nlinks: {wifi: {active: *a}}\n": `m.yaml:4: "a" is no measure; `,
	} {
		if m, err := parse("m.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q is %+v, error %v, want %s", text, m, err, want)
		}
	}
}

func TestFilesThatAreNoModels(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	testkit.OK(t, os.WriteFile(large, make([]byte, mostBytes+1), 0o600))
	for path, want := range map[string]string{
		"no/such/file": "no such file or directory",
		t.TempDir():    "is a directory: allowed is a plain file",
		large:          "is larger than 65536 bytes",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}

func TestKindsOfLinks(t *testing.T) {
	for link, want := range map[[2]string]Kind{
		{"wifi", "eth0"}:  Wifi,
		{"lte", "wlan0"}:  LTE,
		{"a", "wlp3s0"}:   Wifi,
		{"a", "rmnet1"}:   LTE,
		{"a", "wwan0"}:    LTE,
		{"5g", "rmnet0"}:  "5g",
		{"a", "nr1"}:      "5g",
		{"a", "enp3s0"}:   "fixed",
		{"lte2", "usb0"}:  "",
		{"wifi2", "usb0"}: "",
	} {
		testkit.Same(t, KindOf(link[0], link[1]), want, link)
	}
}
