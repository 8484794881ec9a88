// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later

// A server and clients of Go's own library, static, with sockets as its runtime makes them: none
// of it knows of Homa.
//
//	gohttp serve IP:PORT [BYTES]	answers each HTTP request with as many bytes (700000)
//	gohttp get URL BYTES		asks until there is an answer, and then 96 times on 8
//					connections; each must have so many bytes
//	gohttp load http|redis IP:PORT CONNECTIONS SECONDS
//					asks for / or for a key, one request after the other on
//					each connection; prints count, P50 and P99 in µs as JSON
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

func fail(what any) {
	fmt.Fprintln(os.Stderr, "gohttp:", what)
	os.Exit(1)
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		fail("no number: " + word)
	}
	return n
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

// Connects to a server that may have been started just now.
func dial(address string) net.Conn {
	for try := 0; ; try++ {
		to, err := net.Dial("tcp4", address)
		if err == nil {
			return to
		}
		if try == 300 {
			fail(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Sends a request, and reads the whole answer.
func ask(kind string, to net.Conn, from *bufio.Reader) error {
	if kind == "redis" {
		if _, err := to.Write([]byte("GET k\r\n")); err != nil {
			return err
		}
		line, err := from.ReadString('\n')
		if err != nil || line[0] != '$' {
			return fmt.Errorf("redis says %q (%v)", line, err)
		}
		size := number(line[1 : len(line)-2])
		_, err = from.Discard(size + 2)
		return err
	}
	if _, err := to.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		return err
	}
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// Asks on a connection of its own until end; returns how long each answer took.
func asker(kind, address string, end time.Time) []time.Duration {
	to := dial(address)
	defer to.Close()
	from := bufio.NewReader(to)
	var took []time.Duration
	for time.Now().Before(end) {
		begun := time.Now()
		if err := ask(kind, to, from); err != nil {
			fail(err)
		}
		took = append(took, time.Since(begun))
	}
	return took
}

// Gives redis the value that is asked for.
func prepare(address string) {
	to := dial(address)
	defer to.Close()
	fmt.Fprintf(to, "SET k %0100d\r\n", 0)
	if line, err := bufio.NewReader(to).ReadString('\n'); err != nil || line != "+OK\r\n" {
		fail(fmt.Sprintf("redis says %q (%v)", line, err))
	}
}

func load(kind, address string, connections, seconds int) {
	if kind == "redis" {
		prepare(address)
	}
	dial(address).Close()
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var all sync.WaitGroup
	var lock sync.Mutex
	var took []time.Duration
	for i := 0; i < connections; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			mine := asker(kind, address, end)
			lock.Lock()
			took = append(took, mine...)
			lock.Unlock()
		}()
	}
	all.Wait()
	if len(took) == 0 {
		fail("no answer")
	}
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1000
	}
	fmt.Printf("{\"count\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", len(took), at(0.5), at(0.99))
}

func main() {
	args := os.Args[1:]
	switch {
	case len(args) >= 2 && args[0] == "serve":
		size := 700000
		if len(args) > 2 {
			size = number(args[2])
		}
		serve(args[1], size)
	case len(args) == 3 && args[0] == "get":
		client(args[1], number(args[2]))
	case len(args) == 5 && args[0] == "load":
		load(args[1], args[2], number(args[3]), number(args[4]))
	default:
		fail("usage: gohttp serve IP:PORT [BYTES] | get URL BYTES | load http|redis IP:PORT CONNECTIONS SECONDS")
	}
}
