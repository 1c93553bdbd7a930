package schedule

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The document's table, between these lines, is made from Algorithms.
const (
	document   = "../../ALGORITHMS.md"
	tableBegin = "<!-- made by go test ./internal/schedule -update -->\n"
	tableEnd   = "<!-- end of what is made -->\n"
)

// usual is the default of a flag that stands for a constant, "" if it has none.
func usual(option string) string {
	switch option {
	case "upper-limit":
		return fmt.Sprintf("U = %d B", int64(Defaults.UpperLimit))
	case "first-request":
		return fmt.Sprintf("first requests %d B", int64(Defaults.FirstRequests))
	case "padding":
		return fmt.Sprintf("f = %g", Defaults.Padding)
	case "overlap":
		return fmt.Sprintf("overlap %g", Defaults.Overlap)
	case "window":
		return fmt.Sprintf("window %v", Defaults.Window)
	case "connections":
		return fmt.Sprintf("at most %d connections of a link", Defaults.Connections)
	case "slowdown":
		return fmt.Sprintf("slowdown %g", UsualSlowdown)
	case "segment":
		return fmt.Sprintf("segments of %d B", int64(Defaults.Segment))
	}
	return ""
}

func row(a Algorithm) string {
	var constants []string
	for _, option := range a.Options {
		if text := usual(option); text != "" {
			constants = append(constants, text)
		}
	}
	name := "`" + a.Name + "`"
	if a.Alias != "" {
		name += ", `" + a.Alias + "`"
	}
	source := a.Source
	if source == "" {
		source = "ours"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", name, a.About, strings.Join(a.From, "; "), strings.Join(constants, "; "), source, a.Wins)
}

func TestTheDocumentOfTheAlgorithmsIsOfThisTable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for the table", document)
	}
	table := "| algorithm | bytes that a link requests next | decided from | constants | source | where it wins, or what it is for |\n|---|---|---|---|---|---|\n"
	for _, a := range Algorithms {
		table += row(a)
	}
	want := before + tableBegin + "\n" + table + "\n" + tableEnd + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s has another table: go test ./internal/schedule -update writes it", document)
	}
}
