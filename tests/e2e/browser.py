# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What tests of pages share: PAGE FOLDER of the command line, facts, and headless Chromium without a network.
Screenshots are left in FOLDER, or in $HTML_SHOTS if that is set."""
import os
import shutil
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

page, folder = sys.argv[1:]
url = 'file://' + page
shots = os.environ.get('HTML_SHOTS', folder)
failures = []


def fact(name, holds, seen=''):
    if not holds:
        print(f'# {name}: {seen!r}')
        failures.append(name)
    print(('ok - ' if holds else 'not ok - ') + name)


def start(dark, height):
    options = webdriver.ChromeOptions()
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', f'--window-size=1240,{height}',
                     '--host-resolver-rules=MAP * ~NOTFOUND', f'--user-data-dir={folder}/profile{dark}'):
        options.add_argument(argument)
    if dark:
        options.add_argument('--force-dark-mode')
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    return webdriver.Chrome(options=options, service=Service(shutil.which('chromedriver')))
