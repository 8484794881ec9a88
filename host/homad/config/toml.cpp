// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The one file in C++: toml++ reads TOML 1.0 and knows the line of everything.
 * It stops at the first mistake; since whoever wrote the file wants to hear of
 * all, the line with the mistake is blanked and the text parsed again, unless
 * it opened a table, where everything after it would be misunderstood.
 */
#include <cctype>
#include <exception>
#include <string>
#include <toml++/toml.h>

#include "toml.h"

namespace
{

constexpr int max_mistakes = 20;

struct walker {
	homad_toml_visitor *visit;
	void *arg;
	uint32_t table = 0;

	void scalar(const std::string &key, const toml::node &node,
		    uint32_t index, uint32_t count);
	void array(const std::string &key, const toml::array &array);
	void node(const std::string &key, const toml::node &node);
	void all(const std::string &prefix, const toml::table &table);
};

homad_toml_item item_at(const std::string &key, const toml::node &node)
{
	homad_toml_item item{};

	item.key = key.c_str();
	item.line = node.source().begin.line;
	return item;
}

void walker::scalar(const std::string &key, const toml::node &node,
		    uint32_t index, uint32_t count)
{
	homad_toml_item item = item_at(key, node);

	item.table = table;
	item.index = index;
	item.count = count;
	item.kind = HOMAD_TOML_OTHER;
	item.string = "";
	if (auto *b = node.as_boolean()) {
		item.kind = HOMAD_TOML_BOOL;
		item.boolean = b->get();
	} else if (auto *i = node.as_integer()) {
		item.kind = HOMAD_TOML_INTEGER;
		item.integer = i->get();
	} else if (auto *f = node.as_floating_point()) {
		item.kind = HOMAD_TOML_FLOAT;
		item.number = f->get();
	} else if (auto *s = node.as_string()) {
		item.kind = HOMAD_TOML_STRING;
		item.string = s->get().c_str();
	}
	visit(arg, &item);
}

void walker::array(const std::string &key, const toml::array &array)
{
	uint32_t index = 0;
	const auto count = static_cast<uint32_t>(array.size());

	if (array.empty()) {
		homad_toml_item item = item_at(key, array);

		item.table = table;
		item.kind = HOMAD_TOML_EMPTY;
		visit(arg, &item);
	}
	for (const toml::node &element : array) {
		if (const toml::table *inner = element.as_table()) {
			homad_toml_item item = item_at(key, element);

			table = index;
			item.table = index;
			item.kind = HOMAD_TOML_TABLE;
			visit(arg, &item);
			all(key + ".", *inner);
			table = 0;
		} else {
			scalar(key, element, index, count);
		}
		index++;
	}
}

void walker::node(const std::string &key, const toml::node &node)
{
	if (const toml::table *inner = node.as_table()) {
		if (inner->empty()) {
			homad_toml_item item = item_at(key, node);

			item.table = table;
			item.kind = HOMAD_TOML_TABLE;
			visit(arg, &item);
		}
		all(key + ".", *inner);
	} else if (const toml::array *elements = node.as_array()) {
		array(key, *elements);
	} else {
		scalar(key, node, 0, 0);
	}
}

void walker::all(const std::string &prefix, const toml::table &inner)
{
	for (auto &&[key, value] : inner)
		node(prefix + std::string(key.str()), value);
}

/* Blanks the line; returns false if that would only make more mistakes. */
bool blank(std::string &text, uint32_t line)
{
	size_t begin = 0;

	while (--line > 0) {
		begin = text.find('\n', begin);
		if (begin == std::string::npos)
			return false;
		begin++;
	}
	const size_t end = std::min(text.find('\n', begin), text.size());
	const std::string old = text.substr(begin, end - begin);
	const size_t first = old.find_first_not_of(" \t\r");

	if (first == std::string::npos || old[first] == '[' ||
	    old[first] == ']' || old.find("\"\"\"") != std::string::npos ||
	    old.find("'''") != std::string::npos)
		return false;
	text.replace(begin, old.size(), old.size(), ' ');
	return true;
}

} /* namespace */

int homad_toml_parse(const char *text, homad_toml_visitor *visit,
		     homad_toml_complain *complain, void *arg)
{
	int mistakes = 0;

	try {
		std::string rest(text);

		while (mistakes < max_mistakes) {
			try {
				const toml::table root = toml::parse(rest);
				walker walk{ visit, arg };

				walk.all("", root);
				return mistakes;
			} catch (const toml::parse_error &error) {
				const uint32_t line = error.source().begin.line;

				mistakes++;
				complain(arg, line,
					 std::string(error.description())
						 .c_str());
				if (!line || !blank(rest, line))
					return mistakes;
			}
		}
	} catch (const std::exception &error) {
		mistakes++;
		complain(arg, 0, error.what());
	}
	return mistakes;
}
