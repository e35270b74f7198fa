# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Pages and comparisons of long windows: how soon a browser shows one, and how long diff takes."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from harness import BUILD, TOOL, figure, note

PAGE_STEPS = 100000
DIFF_STEPS = 1000000

# Run by a Python that has selenium, which may not be this one.
OPEN = r"""
import shutil, sys
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
options = webdriver.ChromeOptions()
for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1240,1600'):
    options.add_argument(argument)
driver = webdriver.Chrome(options=options, service=Service(shutil.which('chromedriver')))
for _ in range(5):
    driver.get('about:blank')
    driver.get('file://' + sys.argv[1])
    assert driver.execute_script('return document.documentElement.dataset.ready') == '1'
    # From the begin of the navigation to the end of the load event, by when the script has drawn.
    print(driver.execute_script('return performance.getEntriesByType("navigation")[0].loadEventEnd'))
driver.quit()
"""


def write_capture(path, steps, seed):
    """Steps of 1 ms, give or take, one in 100 waits for a lock, one in 10 is large."""
    with subprocess.Popen([BUILD + "/tests/events", "/dev/stdin", path], stdin=subprocess.PIPE, text=True) as events:
        put = events.stdin.write
        put("window detail=steps host=bench\ntarget tgid=7 comm=engine exe=/bin/engine cmdline=engine\n"
            "thread tid=7 comm=engine\nkind kind=1 name=decode args=n_tokens\n")
        at, state = 1000, seed
        for i in range(steps):
            state = (state * 1103515245 + 12345) % 2**31
            us = (10000 if i % 10 == 0 else 1000) + state % 200
            wait = 5000 if i % 100 == 99 else 0
            put("step tid=7 kind=1 start=%dus end=%dus cpu=%dus asleep=%dus run_delay=0 args=%d%s\n"
                % (at, at + us + wait, us, wait, 512 if i % 10 == 0 else 4, " futex=1/5ms" if wait else ""))
            at += us + wait + 100
        put("end end=%dus\n" % (at + 1000))
    if events.returncode:
        raise SystemExit("bench: no capture")


def bench_page(folder):
    path = folder + "/page.html"
    write_capture(folder + "/short.fbt", PAGE_STEPS, 1)
    subprocess.run([TOOL, "--replay", folder + "/short.fbt", "--report", "none", "--html", path],
                   check=True, stderr=subprocess.DEVNULL)
    figure("a page of 100,000 steps: its size", os.path.getsize(path) / 2**20, "MiB")
    python = next((one for one in (sys.executable, "/usr/bin/python3")
                   if not subprocess.run([one, "-c", "import selenium"], stderr=subprocess.DEVNULL).returncode), None)
    if not python or not shutil.which("chromium") or not shutil.which("chromedriver"):
        note("no chromium, chromedriver or python3-selenium")
        return
    out = subprocess.run([python, "-c", OPEN, path], stdout=subprocess.PIPE, text=True, check=True).stdout
    figure("a page of 100,000 steps: opens in headless Chromium",
           statistics.median(float(line) for line in out.split()) / 1000, "s", limit=2)


def compare(name, a, b, limit):
    start = time.monotonic()
    child = subprocess.Popen([TOOL, "diff", a, b, "--report", "none"])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    figure(name, time.monotonic() - start, "s", limit=limit, ok=None if child.returncode == 0 else False)
    figure(name + ": memory", usage.ru_maxrss / 1024, "MiB", limit=600)


def bench_diff(folder):
    for seed in (1, 2):
        path = "%s/long%d" % (folder, seed)
        write_capture(path + ".fbt", DIFF_STEPS, seed)
        subprocess.run([TOOL, "--replay", path + ".fbt", "--report", "none", "--profile", path + ".jsonl"],
                       check=True, stderr=subprocess.DEVNULL)
    compare("diff of two recordings of 1,000,000 steps", folder + "/long1.fbt", folder + "/long2.fbt", 20)
    compare("diff of two profiles of 1,000,000 steps", folder + "/long1.jsonl", folder + "/long2.jsonl", 120)


def bench_pages():
    with tempfile.TemporaryDirectory() as folder:
        bench_page(folder)
        bench_diff(folder)
