package cron

import "testing"

func TestWordsOfExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@daily":                   "every day at 00:00",
		"@hourly":                  "every hour",
		"@weekly":                  "at 00:00 on Sunday",
		"@monthly":                 "at 00:00 on day 1 of the month",
		"@yearly":                  "at 00:00 on day 1 of the month in January",
		"@every 90m":               "every 1h30m",
		"* * * * *":                "every minute",
		"*/15 * * * *":             "every 15 minutes",
		"*/15 9-17 * * 1-5":        "every 15 minutes from 09:00 to 17:59 on Monday to Friday",
		"30 * * * *":               "every hour at minute 30",
		"0 */2 * * *":              "every 2 hours",
		"5 */6 * * *":              "every day at 00:05, 06:05, 12:05 and 18:05",
		"0 2 * * MON-FRI":          "at 02:00 on Monday to Friday",
		"0 2,14 * * *":             "every day at 02:00 and 14:00",
		"0 9 8-14 * MON":           "at 09:00 on Monday that is day 8 to 14 of the month",
		"0 0 1,15 3,4,6-9 *":       "at 00:00 on day 1 and 15 of the month in March, April and June to September",
		"5,20 * * * *":             "at minutes 5 and 20 of each hour",
		"7 1,3,5,9,11,13,15 * * *": "at minute 7 in the hours 1, 3, 5, 9, 11, 13 and 15",
		"0 0 12 * * * *":           "0 0 12 * * * *",
		"nonsense":                 "nonsense",
	} {
		if got := Words(text); got != want {
			t.Errorf("Words(%q) = %q, want %q", text, got, want)
		}
	}
}
