package cli

import (
	"testing"
)

func TestAWrongConfigurationSaysWhere(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"link: [lo\n":                         "c.yaml: yaml: line 1: ",
		"- link":                              "c.yaml:1: NAME: VALUE lines are needed",
		"link: lo\nlinks: lo":                 `c.yaml:2: there is no setting "links": allowed are listen, allow, `,
		"config: c.yaml":                      `c.yaml:1: there is no setting "config"`,
		"link: lo\n---\ncap: lo=1GB":          "c.yaml:2: another document begins: one is needed",
		"---\n---\nlink: lo":                  "c.yaml:2: another document begins: one is needed",
		"link: lo\n---\n:":                    "c.yaml",
		"# nothing":                           "at least one --link is needed",
		"link: lo\n\nlink: lo":                "c.yaml:3: link is set twice, first in line 1",
		"link: {wifi: lo}":                    "c.yaml:1: link: one value is needed, or a list of values",
		"link: lo\nstreams:":                  "c.yaml:2: streams: one value is needed",
		"link: lo\nstreams: [1, 2]":           "c.yaml:2: streams: one value is needed",
		"link: lo\nstreams: many":             "c.yaml:2: streams: ",
		"link: lo\nstreams: 0":                "c.yaml:2: streams: 0: allowed are numbers from 1",
		"link: lo\nupper-limit: 3 apples":     `c.yaml:2: upper-limit: "3 apples" is not a size`,
		"link: lo\ncap:\n- lo=1GB\n- lte=1GB": `c.yaml:2: cap: lte=1GB: there is no link "lte", the links are lo`,
		"link: lo\ncap: lo=1GB/year":          `c.yaml:2: cap: lo=1GB/year: "1GB/year" is not a size`,
		"link: lo\nalgorithm: alg3\nplain: true\npadding: 0.5": "c.yaml:3: plain: it and --padding exclude each other",
		"link: lo\nlisten: nowhere":                            "c.yaml:2: listen: nowhere: ",
		"link: lo\nmetrics: nowhere":                           "c.yaml:2: metrics: nowhere: allowed is HOST:PORT or unix:PATH",
		"":                                                     "at least one --link is needed",
	} {
		t.Run(text, func(t *testing.T) {
			expectFailure(t, 2, want, "proxy", "--config", written(t, "c.yaml", []byte(text)))
		})
	}
	expectFailure(t, 2, "open none.yaml: ", "proxy", "--config", "none.yaml")
	// The command line replaces the file.
	written(t, "c.yaml", []byte("link: lo\nstreams: 0"))
	expectFailure(t, 2, "--streams -1: allowed are", "proxy", "--config", "c.yaml", "--streams", "-1")
}
