#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Holds an HTML report against the JSON report of the same window: PAGE REPORT.

The page must have one element of data and one script, whose digests its policy names, nothing that
leads out of it, the same figures, and a point for each step (or the stated share of them).
"""
import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.tags, self.policy = None, {}, [], ''

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if attrs.get('http-equiv') == 'Content-Security-Policy':
            self.policy = attrs['content']
        if tag in ('script', 'style', 'title'):
            self.open = attrs.get('id', tag)

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, text):
        if self.open:
            self.text.setdefault(self.open, []).append(text)


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def complaints(source, report):
    page = Page()
    page.feed(source)
    page.close()
    text = {name: ''.join(parts) for name, parts in page.text.items()}
    tags = [tag for tag, attrs in page.tags]
    if tags.count('script') != 2 or tags.count('style') != 1:
        yield f'elements {tags}'
        return
    for name, rule in (('script', 'script-src'), ('style', 'style-src')):
        if f'{rule} {digest(text[name])}' not in page.policy:
            yield f'the policy does not name the digest of the {name}: {page.policy}'
    if "default-src 'none'" not in page.policy or 'unsafe' in page.policy:
        yield f'policy {page.policy}'
    for tag, attrs in page.tags:
        if {'src', 'href', 'style', 'onclick'} & attrs.keys():
            yield f'{tag} has {attrs}'
    if re.search(r'https?:|//[a-z]', text['script'] + text['style']):
        yield 'the script or the style names an address'
    if re.search(r'\.(innerHTML|outerHTML|insertAdjacentHTML|write)\b', text['script']):
        yield 'the script makes elements of text'
    if '<' in text['data']:
        yield 'the data have a <'
    data = json.loads(text['data'])
    inner = {key: value for key, value in data['report'].items() if key != 'files'}
    if inner != {key: value for key, value in report.items() if key != 'files'}:
        yield 'the figures are not those of the JSON report'
    yield from complaints_of_steps(data, report)


def complaints_of_steps(data, report):
    points, columns = data['points'], data['points']['columns']
    if points['seen'] != report['steps']:
        yield f"{points['seen']} steps, reported are {report['steps']}"
    if {len(column) for column in columns.values()} not in ({len(columns['number'])}, set()):
        yield 'columns of different length'
    if points['stride'] == 1 and sorted(columns['number']) != list(range(1, report['steps'] + 1)):
        yield f"points {columns['number']}"
    wrong = sum(1 for cause in columns['cause'] if cause)
    if wrong != report['escalations']['escalated']:
        yield f"{wrong} escalated points, reported are {report['escalations']['escalated']}"
    for kind in data['kinds']:
        reported = [k for k in report['kinds'] if k['number'] == kind['kind']]
        slots = kind['timeline']['slots']
        steps = sum(count for slot in slots for _, count in slot['bins'])
        if len(reported) != 1 or reported[0]['name'] != kind['name'] or reported[0]['steps'] != steps:
            yield f"{kind['name']}: {steps} steps over time"
        if len(reported) == 1 and sum(sum(slot['parts']) for slot in slots) != reported[0]['total_ns']:
            yield f"{kind['name']}: the parts over time are not the total"


def main():
    with open(sys.argv[1], encoding='utf-8') as page, open(sys.argv[2], encoding='utf-8') as report:
        found = list(complaints(page.read(), json.load(report)))
    for line in found:
        print(f'# {sys.argv[1]}: {line}')
    sys.exit(bool(found))


if __name__ == '__main__':
    main()
