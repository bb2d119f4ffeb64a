package model

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// embeddedPrices holds the standard prices that Anthropic and OpenAI published on 2026-10-27, at
// https://platform.claude.com/docs/en/about-claude/pricing and https://developers.openai.com/api/docs/pricing. They
// apply to cache writes with the shortest lifetime, and not to batch, priority or regional service. OpenAI's older
// models charge no extra for cache writes.
//
//go:embed prices.json
var embeddedPrices []byte

// maxPricesBytes bounds the size of a price file.
const maxPricesBytes = 1 << 20

// Price is the price of a model, in USD per million tokens.
type Price struct {
	Rates
	Long *LongRates `json:"long,omitempty"` // for requests with a long input; nil if the price is the same
}

// Rates are prices by the kind of token.
type Rates struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// LongRates replace all rates of a request whose input, cached or not, exceeds Above tokens.
type LongRates struct {
	Above int64 `json:"above"`
	Rates
}

// Prices maps models to prices, by model name or by a name prefix that ends in "*".
type Prices map[string]Price

// LoadPrices returns the embedded prices, overridden and extended by those in a JSON file of the same form:
//
//	{"my-model": {"input": 0.5, "output": 1.5, "cacheRead": 0.05, "cacheWrite": 0.5}, "local-*": {"input": 0, "output": 0}}
//
// If the price of cached tokens is missing, they cost as much as other input tokens. An empty path adds nothing.
func LoadPrices(path string) (Prices, error) {
	prices, err := parsePrices(embeddedPrices)
	if err != nil || path == "" {
		return prices, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the prices of models: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPricesBytes {
		return nil, fmt.Errorf("read the prices of models: %s is not a file of at most %d KiB", path, maxPricesBytes>>10)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the prices of models: %w", err)
	}
	added, err := parsePrices(text)
	if err != nil {
		return nil, fmt.Errorf("the prices of models in %s are invalid: %w", path, err)
	}
	for name, price := range added {
		prices[name] = price
	}
	return prices, nil
}

// parsePrices parses a price table.
func parsePrices(text []byte) (Prices, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf(`%w; write {"model": {"input": 1.5, "output": 6}} with USD per million tokens`, err)
	}
	prices := Prices{}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		price, err := parsePrice(raw[name])
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%q: %w", name, err))
		case name == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*"):
			problems = append(problems, fmt.Errorf("%q: a name is not empty, and has a * at its end only", name))
		}
		prices[name] = price
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return prices, nil
}

// parsePrice parses the price of a model.
func parsePrice(text []byte) (Price, error) {
	type rates struct {
		Input, Output, CacheRead, CacheWrite *float64
	}
	var raw struct {
		rates
		Long *struct {
			Above int64
			rates
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&raw); err != nil {
		return Price{}, err
	}
	complete := func(r rates) (Rates, error) {
		if r.Input == nil || r.Output == nil {
			return Rates{}, errors.New("input and output are required")
		}
		whole := Rates{*r.Input, *r.Output, *r.Input, *r.Input}
		if r.CacheRead != nil {
			whole.CacheRead = *r.CacheRead
		}
		if r.CacheWrite != nil {
			whole.CacheWrite = *r.CacheWrite
		}
		if min(whole.Input, whole.Output, whole.CacheRead, whole.CacheWrite) < 0 {
			return Rates{}, errors.New("a price must not be negative")
		}
		return whole, nil
	}
	short, err := complete(raw.rates)
	if err != nil || raw.Long == nil {
		return Price{Rates: short}, err
	}
	long, err := complete(raw.Long.rates)
	if err == nil && raw.Long.Above <= 0 {
		err = errors.New("above must be a positive number of tokens")
	}
	if err != nil {
		return Price{}, fmt.Errorf("long: %w", err)
	}
	return Price{short, &LongRates{raw.Long.Above, long}}, nil
}

// Cost returns the cost of one reply in USD, and whether the price of its model is known. An exact name takes
// precedence over the longest matching prefix.
func (p Prices) Cost(model string, u Usage) (usd float64, known bool) {
	price, known := p.find(model)
	if !known {
		return 0, false
	}
	rates := price.Rates
	if price.Long != nil && u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens > price.Long.Above {
		rates = price.Long.Rates
	}
	return (float64(u.InputTokens)*rates.Input + float64(u.OutputTokens)*rates.Output +
		float64(u.CacheReadTokens)*rates.CacheRead + float64(u.CacheWriteTokens)*rates.CacheWrite) / 1e6, true
}

// find returns the price of a model.
func (p Prices) find(model string) (price Price, known bool) {
	if price, known = p[model]; known {
		return price, true
	}
	longest := -1
	for name, candidate := range p {
		beginning, isPattern := strings.CutSuffix(name, "*")
		if isPattern && len(beginning) > longest && strings.HasPrefix(model, beginning) {
			price, longest = candidate, len(beginning)
		}
	}
	return price, longest >= 0
}
