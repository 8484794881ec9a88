# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Unmodified programs on streams over Homa: homa-streams chooses those of a cgroup, of a user or
# of a name.
. /t/tap.sh

MODULE=$(ls /homa/own/*.ko)
mkdir -p /run/cg /run/www
mount -t cgroup2 none /run/cg
mkdir -p /run/cg/ours/inner
head -c 700000 /dev/urandom >/run/www/file

# refused WHY COMMAND...: the command fails, and says why
refused() {
	why=$1
	shift
	! "$@" 2>/run/why && cat /run/why && grep -q "$why" /run/why
}
ends_with() {
	want=$1
	shift
	"$@"
	[ $? = "$want" ]
}
# give COMMAND...: in a cgroup below the one that the rule names. A program, so that what it runs
# has the number that $! says.
cat >/bin/give <<'EOF'
#!/bin/sh
echo $$ >/run/cg/ours/inner/cgroup.procs
exec "$@"
EOF
chmod +x /bin/give
# till SERVER COMMAND...: again and again until it succeeds, as long as the server lives
till() {
	alive=$1
	shift
	until "$@"; do
		kill -0 "$alive" || return
		sleep 0.5
	done
}
# over_homa COMMAND...: it makes connections over Homa, and none over TCP
over_homa() {
	was=$(metric "" host_stream_conns)
	"$@" && [ "$(metric "" host_stream_conns)" -gt "$was" ]
}
over_tcp() {
	was=$(metric "" host_stream_conns)
	"$@" && [ "$(metric "" host_stream_conns)" = "$was" ]
}
# A file by HTTP from busybox' server at port $1; both are run by the command in $2....
fetch() {
	port=$1
	shift
	rm -f /run/got
	"$@" httpd -f -p 127.0.0.1:$port -h /run/www &
	server=$!
	till $server "$@" wget -q -O /run/got http://127.0.0.1:$port/file
	kill $server
	wait $server
	cmp /run/www/file /run/got
}

rmmod homa
expect "no rule without the module" refused "load the module" homa-streams on --program httpd
insmod $MODULE
patient ""
if ! homa-streams on --cgroup /run/cg/ours 2>/run/why; then
	cat /run/why
	expect "a kernel that is too old says so" grep -q "no update_socket_protocol" /run/why
	expect "and has no rule" ends_with 3 homa-streams status
	finish
	exit 0
fi
expect "a rule twice is one rule" homa-streams on --cgroup ours
expect "it is shown" sh -c 'homa-streams status | grep -qx "cgroup /run/cg/ours"'
expect "a file by HTTP" over_homa fetch 80 give
expect "other programs have TCP" over_tcp fetch 81 env

if command -v redis-server >/dev/null; then
	redis_pongs() {
		give redis-cli -h 127.0.0.1 ping 2>&1 | grep -q PONG
	}
	redis_answers() {
		give redis-server --port 6379 --bind 127.0.0.1 --save "" >/run/redis.log 2>&1 &
		server=$!
		till $server redis_pongs
		give redis-cli -h 127.0.0.1 set key value
		give redis-cli -h 127.0.0.1 get key >/run/value 2>&1
		give redis-benchmark -h 127.0.0.1 -q -n 2000 -c 10 -t set,get
		kill $server
		wait $server
		cat /run/redis.log
		grep -q value /run/value
	}
	expect "redis answers" over_homa redis_answers
fi
if command -v nginx >/dev/null; then
	mkdir -p /run/ng
	nginx_serves() {
		give nginx -c /etc/nginx.conf &
		server=$!
		till $server give wget -q -O /run/got2 http://127.0.0.1:82/file
		kill $server
		wait $server
		cat /run/ng/error.log
		cmp /run/www/file /run/got2
	}
	expect "a file from nginx" over_homa nginx_serves
fi
if command -v gohttp >/dev/null; then
	go_serves() {
		give gohttp serve 127.0.0.1:83 &
		server=$!
		give gohttp get http://127.0.0.1:83/ 700000
		status=$?
		kill $server
		wait $server
		return $status
	}
	expect "a server and a client in Go" over_homa go_serves
fi

expect "off" homa-streams off --cgroup /run/cg/ours
expect "and off" ends_with 3 homa-streams status
expect "TCP again" over_tcp fetch 84 give
expect "a rule that is not there" refused "no such rule" homa-streams off --user 4711
expect "by name" homa-streams on --program httpd
expect "and by another" homa-streams on --program wget
expect "those two" over_homa fetch 85 env
expect "two rules" sh -c '[ $(homa-streams status | wc -l) = 2 ]'
expect "all off" homa-streams off
expect "TCP once more" over_tcp fetch 86 env
expect "a user's programs of a name" homa-streams on --user 4711 --program wget
expect "but not another user's" over_tcp fetch 87 env
expect "all off again" homa-streams off
expect "root's programs: no" refused "give --program" homa-streams on --user 0
expect "all programs: no" refused "give --program" homa-streams on --cgroup /run/cg
expect "no option: no" ends_with 2 homa-streams on
expect "status of a part: no" ends_with 2 homa-streams status --user 0
expect "no cgroup: no" refused "no cgroup" homa-streams on --cgroup /run/www
expect "no such user" refused "no such user" homa-streams on --user nobody-of-that-name

rmdir /run/cg/ours/inner
homa-streams on --cgroup ours
id=$(stat -c %i /run/cg/ours)
rmdir /run/cg/ours
expect "a cgroup that is gone" sh -c "homa-streams status | grep -qx 'cgroup $id (gone)'"
expect "goes by its number" homa-streams off --cgroup $id
expect "no RPC is left" rpcs_gone ""
finish
