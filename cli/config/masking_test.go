package config

import "testing"

func TestSecretSettingsAreMasked(t *testing.T) {
	for _, test := range [][3]string{
		{"name", "a", "a"},
		{"token", "s3cret", "***"},
		{"token", "", ""},
		{"store", "s3://bucket?region=eu&secret_key=x", "s3://bucket?region=eu&secret_key=***"},
		{"gateway", "https://me:s3cret@yard:7280/a", "https://me:***@yard:7280/a"},
		{"gateway", "http://yard:7280", "http://yard:7280"},
		{"store", "/var/lib", "/var/lib"},
		{"address", "127.0.0.1:7280", "127.0.0.1:7280"},
	} {
		if got := masked(test[0], test[1]); got != test[2] {
			t.Errorf("%s %s is logged as %s, not %s", test[0], test[1], got, test[2])
		}
	}
}
