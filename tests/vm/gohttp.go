// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later

// An HTTP server and a client of Go's own library, static, with sockets as its runtime makes them:
// neither knows of Homa.
//
//	gohttp serve IP:PORT [BYTES]	answers each request with as many bytes (700000)
//	gohttp get URL BYTES		asks until there is an answer, and then 96 times on 8
//					connections; each must have so many bytes
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

func fail(what any) {
	fmt.Fprintln(os.Stderr, "gohttp:", what)
	os.Exit(1)
}

func serve(address string, size int) {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * 7)
	}
	fail(http.ListenAndServe(address, http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })))
}

func get(url string, size int) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if len(body) != size {
		return fmt.Errorf("%d bytes came, not %d", len(body), size)
	}
	for i, b := range body {
		if b != byte(i*7) {
			return fmt.Errorf("byte %d is %d", i, b)
		}
	}
	return nil
}

func client(url string, size int) {
	var err error
	for try := 0; try < 30; try++ {
		if err = get(url, size); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil {
		fail(err)
	}
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 12; i++ {
				if err := get(url, size); err != nil {
					fail(err)
				}
			}
		}()
	}
	all.Wait()
}

func main() {
	size := 700000
	if len(os.Args) < 3 {
		fail("usage: gohttp serve IP:PORT [BYTES] | get URL BYTES")
	}
	if len(os.Args) > 3 {
		var err error
		if size, err = strconv.Atoi(os.Args[3]); err != nil || size < 0 {
			fail("BYTES is no number")
		}
	}
	if os.Args[1] == "serve" {
		serve(os.Args[2], size)
	} else {
		client(os.Args[2], size)
	}
}
