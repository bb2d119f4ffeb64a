package model

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePrices returns the path of a price file.
func writePrices(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadPrices returns the embedded prices with those of a text, which may be empty.
func loadPrices(t *testing.T, text string) Prices {
	t.Helper()
	path := ""
	if text != "" {
		path = writePrices(t, text)
	}
	prices, err := LoadPrices(path)
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

// million is a million tokens of each kind.
var million = Usage{InputTokens: 1e6, OutputTokens: 1e6, CacheReadTokens: 1e6, CacheWriteTokens: 1e6}

func TestCostAddsEveryKindOfToken(t *testing.T) {
	t.Parallel()
	prices := loadPrices(t, `{
		"all": {"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 100},
		"plain": {"input": 2, "output": 7},
		"free": {"input": 0, "output": 0}
	}`)
	for _, test := range []struct {
		model string
		usage Usage
		want  float64
	}{
		{"all", million, 111.1},
		{"all", Usage{InputTokens: 500_000}, 0.5},
		{"all", Usage{OutputTokens: 3}, 0.00003},
		{"all", Usage{}, 0},
		{"plain", million, 2 + 7 + 2 + 2}, // cached tokens cost as much as others
		{"free", million, 0},
	} {
		usd, known := prices.Cost(test.model, test.usage)
		if !known || math.Abs(usd-test.want) > 1e-9 {
			t.Errorf("%s: %+v costs %g, known %v, want %g", test.model, test.usage, usd, known, test.want)
		}
	}
}

func TestFilesReplaceAndCompleteEmbeddedPrices(t *testing.T) {
	t.Parallel()
	embedded := loadPrices(t, "")
	for name := range embedded {
		usd, known := embedded.Cost(strings.Replace(name, "*", "26-01-01", 1), million)
		if !known || usd <= 0 {
			t.Errorf("embedded %s costs %g, known %v", name, usd, known)
		}
	}
	before, known := embedded.Cost("claude-sonnet-4-5", million)
	if !known {
		t.Fatal("claude-sonnet-4-5 has no embedded price")
	}
	prices := loadPrices(t, `{"claude-sonnet-4-5": {"input": 1, "output": 1}, "mine": {"input": 3, "output": 3}}`)
	if after, _ := prices.Cost("claude-sonnet-4-5", million); after != 4 || before == 4 {
		t.Errorf("the price is %g, and was %g before the file", after, before)
	}
	if usd, known := prices.Cost("mine", million); !known || usd != 12 {
		t.Errorf("the added price is %g, known %v", usd, known)
	}
	if len(prices) != len(embedded)+1 {
		t.Errorf("%d prices, want %d", len(prices), len(embedded)+1)
	}
}

func TestExactNamesTakePrecedenceOverPatterns(t *testing.T) {
	t.Parallel()
	prices := loadPrices(t, `{
		"local-*": {"input": 1, "output": 0, "cacheRead": 0, "cacheWrite": 0},
		"local-big-*": {"input": 2, "output": 0, "cacheRead": 0, "cacheWrite": 0},
		"local-big-7": {"input": 3, "output": 0, "cacheRead": 0, "cacheWrite": 0},
		"local-big-7*": {"input": 4, "output": 0, "cacheRead": 0, "cacheWrite": 0}
	}`)
	for model, want := range map[string]float64{
		"local-": 1, "local-small": 1, "local-big": 1, "local-big-": 2, "local-big-6": 2, "local-big-7": 3, "local-big-70": 4,
	} {
		if usd, known := prices.Cost(model, million); !known || usd != want {
			t.Errorf("%s costs %g, known %v, want %g", model, usd, known, want)
		}
	}
	all := loadPrices(t, `{"*": {"input": 5, "output": 0, "cacheRead": 0, "cacheWrite": 0}}`)
	if usd, known := all.Cost("any other", million); !known || usd != 5 {
		t.Errorf("the pattern of all names: %g, known %v", usd, known)
	}
}

func TestUnknownModelsHaveNoPrice(t *testing.T) {
	t.Parallel()
	prices := loadPrices(t, "")
	for _, model := range []string{"", "no-such-model", "claude", "claude-sonnet-4-5x", "Claude-Sonnet-4-5", "*"} {
		if usd, known := prices.Cost(model, million); known || usd != 0 {
			t.Errorf("%q costs %g, known %v", model, usd, known)
		}
	}
	if _, known := Prices(nil).Cost("claude-sonnet-4-5", million); known {
		t.Error("no prices know a model")
	}
}

func TestInputsAboveALimitHaveTheirOwnRates(t *testing.T) {
	t.Parallel()
	prices := loadPrices(t, `{"m": {"input": 1, "output": 1, "cacheRead": 1, "cacheWrite": 1,
		"long": {"above": 1000, "input": 2, "output": 10, "cacheRead": 3}}}`)
	for _, test := range []struct {
		usage Usage
		want  float64 // millionths of a dollar
	}{
		{Usage{InputTokens: 1000, OutputTokens: 5000}, 6000},                         // the output does not count
		{Usage{InputTokens: 1001, OutputTokens: 1}, 2002 + 10},                       // all tokens get the other rate
		{Usage{InputTokens: 400, CacheReadTokens: 300, CacheWriteTokens: 300}, 1000}, // equal to the bound
		{Usage{InputTokens: 400, CacheReadTokens: 300, CacheWriteTokens: 301}, 2302}, // a cache write costs as much as input
		{Usage{CacheReadTokens: 2000, OutputTokens: 1}, 6010},                        // cached input counts
		{Usage{OutputTokens: 2000}, 2000},
	} {
		usd, known := prices.Cost("m", test.usage)
		if !known || math.Abs(usd*1e6-test.want) > 1e-6 {
			t.Errorf("%+v costs %g millionths, known %v, want %g", test.usage, usd*1e6, known, test.want)
		}
	}
}

func TestInvalidPricesAreExplained(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`{`, `write {"model": {"input": 1.5, "output": 6}}`},
		{``, `write {"model": `},
		{`[]`, `write {"model": `},
		{`{} {}`, `write {"model": `},
		{`{"m": 3}`, `"m": json: cannot unmarshal`},
		{`{"m": null}`, `"m": input and output are required`},
		{`{"m": {"input": 1}}`, `"m": input and output are required`},
		{`{"m": {"input": -1, "output": 1}}`, `"m": a price must not be negative`},
		{`{"m": {"input": 1, "output": 1, "cacheRead": -0.1}}`, `"m": a price must not be negative`},
		{`{"m": {"input": "1", "output": 1}}`, `"m": json: cannot unmarshal string`},
		{`{"m": {"input": 1e999, "output": 1}}`, `"m": json: cannot unmarshal number`},
		{`{"m": {"input": 1, "output": 1, "price": 1}}`, `"m": json: unknown field "price"`},
		{`{"m": {"input": 1, "output": 1, "long": {"input": 1, "output": 1}}}`, `"m": long: above must be a positive number of tokens`},
		{`{"m": {"input": 1, "output": 1, "long": {"above": 5, "output": 1}}}`, `"m": long: input and output are required`},
		{`{"m": {"input": 1, "output": 1, "long": {"above": 5, "input": 1, "output": -1}}}`, `"m": long: a price must not be negative`},
		{`{"": {"input": 1, "output": 1}}`, `"": a name is not empty`},
		{`{"a*b": {"input": 1, "output": 1}}`, `"a*b": a name is not empty, and has a * at its end only`},
		{`{"b": {"input": 1}, "a": {"output": 1}}`, "\"a\": input and output are required\n\"b\": input and output are required"},
	} {
		path := writePrices(t, test.text)
		prices, err := LoadPrices(path)
		if err == nil || prices != nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s\ngot  %v\nwant %s", test.text, err, test.want)
		}
	}
}

func TestUnreadableFilesOfPricesAreErrors(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.json")
	for path, want := range map[string]string{
		missing:     missing,
		t.TempDir(): "is not a file of at most 1024 KiB",
		writePrices(t, strings.Repeat(" ", maxPricesBytes)+"{}"): "is not a file of at most 1024 KiB",
	} {
		if _, err := LoadPrices(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}
