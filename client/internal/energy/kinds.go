package energy

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Kind is what a link is: the name of a row of link_kinds.json.
type Kind string

// The kinds that algorithms tell apart.
const (
	Wifi Kind = "wifi"
	LTE  Kind = "lte"
)

// kindRow is what the client reads of a row. linklab reads the same file:
// core/link_kinds.py says what each field means.
type kindRow struct {
	Name     Kind     `json:"name"`
	Title    string   `json:"title"`
	Device   string   `json:"device"`
	Prefixes []string `json:"device_prefixes"`
}

//go:embed link_kinds.json
var kindsFile []byte

// kinds are the rows. Most downloads never ask for them.
var kinds = sync.OnceValue(func() (rows []kindRow) {
	if err := json.Unmarshal(kindsFile, &rows); err != nil {
		panic(err) // The file is a part of the program.
	}
	return rows
})

// KindOf returns a link's kind by the link's name, else by its device's name.
// It returns "" if neither tells.
func KindOf(name, device string) Kind {
	for _, k := range kinds() {
		if name == string(k.Name) {
			return k.Name
		}
	}
	for _, k := range kinds() {
		if slices.ContainsFunc(k.Prefixes, func(prefix string) bool { return strings.HasPrefix(device, prefix) }) {
			return k.Name
		}
	}
	return ""
}

// KindsWanted says by which names of links and devices KindOf tells a kind.
func KindsWanted() string {
	var titles, names, devices []string
	for _, k := range kinds() {
		titles = append(titles, k.Title)
		names = append(names, string(k.Name))
		devices = append(devices, k.Device+"0")
	}
	return "it must tell whether it is " + either(titles) + ": allowed are the names " +
		either(names) + ", and devices such as " + either(devices)
}

// either returns words as alternatives: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
