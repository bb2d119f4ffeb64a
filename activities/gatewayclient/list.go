package gatewayclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// List holds the base URLs of the gateways of one fleet, without a trailing slash, in the order in which they are tried. It
// has at least one.
type List []*url.URL

// separator is between two gateways in the text of a list.
const separator = ","

// Parse reads a list of gateways, separated by commas. Each is a URL, or host:port for one with http.
func Parse(text string) (List, error) {
	if strings.Trim(text, separator+" ") == "" {
		return nil, errors.New("the list of gateways is empty; name at least one, such as http://host:7280")
	}
	var list List
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, separator) {
		u, err := parseURL(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if u.Scheme != list.scheme() && list != nil {
			return nil, fmt.Errorf("%s and %s mix http and https; use one of them for all gateways", list[0], u)
		}
		key := strings.ToLower(u.Host) + u.Path
		if seen[key] {
			return nil, fmt.Errorf("gateway %s appears twice; name each one once", u)
		}
		seen[key] = true
		list = append(list, u)
	}
	return list, nil
}

func parseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("the list of gateways has an empty entry; remove the comma")
	}
	location := text
	if !strings.Contains(location, "://") {
		location = "http://" + location
	}
	u, err := url.Parse(strings.TrimSuffix(location, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not a gateway URL such as http://host:7280", text)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s contains a password, and URLs end up in logs; use `switchyard login` or SWITCHYARD_TOKEN instead", u.Redacted())
	}
	return u, nil
}

func (l List) scheme() string {
	if len(l) == 0 {
		return ""
	}
	return l[0].Scheme
}

// URLs returns the URL of each gateway.
func (l List) URLs() []string {
	urls := make([]string, len(l))
	for i, u := range l {
		urls[i] = u.String()
	}
	return urls
}

// String returns the list in the form that Parse reads.
func (l List) String() string { return strings.Join(l.URLs(), separator) }
