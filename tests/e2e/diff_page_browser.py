# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Drives the page of diff_page.sh in headless Chromium: PAGE FOLDER. Screenshots are left in FOLDER, or in
$HTML_SHOTS if that is set."""
import json
import sys

from selenium.webdriver.common.by import By

from browser import fact, failures, shots, start, url


def look(driver):
    driver.get(url)
    text = driver.find_element(By.TAG_NAME, 'body').text
    fact('the page has been drawn', driver.execute_script('return document.documentElement.dataset.ready') == '1',
         (driver.get_log('browser'), text[-300:]))
    fact('no name ran as a script', 'owned' not in driver.title, driver.title)
    fact('nor became an element', not driver.find_elements(By.CSS_SELECTOR, 'img, main b b, main i i, iframe'))
    fact('but is shown as it is', '</script><script>document.title+=/owned/</script>' in text, text[:500])
    fact('and so is the name of a file', '<i>a<img src=x onerror=alert(1)>' in text, text[:500])
    fact('the headline is there', text.count('worse: 1 of 2 classes of steps') == 1, text[:500])
    fact('two classes', len(driver.find_elements(By.CSS_SELECTOR, 'section.class')) == 2)
    fact('with a curve each of A and B', len(driver.find_elements(By.CSS_SELECTOR, 'section.class polyline')) == 4)
    sides = json.loads(driver.find_element(By.ID, 'data').get_attribute('textContent'))['sides']
    facts = [row.text for row in driver.find_elements(By.CSS_SELECTOR, 'section:last-of-type tbody tr')]
    fact('each fact about A and B is shown', len(facts) == len(sides[0]) and 'GPU records off off' in facts, facts)
    first = [row.text for row in driver.find_elements(By.CSS_SELECTOR, 'section.class tr') if row.text.startswith('p50')]
    fact('the small steps take 30 % longer, the large ones as long',
         sorted(row.split('+')[-1].endswith('same') for row in first) == [False, True] and '+30.0 %' in ' '.join(first), first)
    dots = [(dot.get_attribute('fill'), float(dot.get_attribute('cx')))
            for dot in driver.find_elements(By.CSS_SELECTOR, 'section.class circle')]
    fact('red dots are on the right, grey ones in the middle',
         all(cx > 140 if fill == '#c4392f' else 125 < cx < 135 for fill, cx in dots) and len(dots) >= 4, dots)


def act(driver):
    row = driver.find_elements(By.CSS_SELECTOR, 'tr.pick')[1]
    row.click()
    top = driver.execute_script('return document.querySelectorAll("section.class")[1].getBoundingClientRect().top')
    fact('a click on a class leads to it', -2 < top < 700 and driver.execute_script('return scrollY') > 0, top)
    driver.execute_script('scrollTo(0, 0)')


def quiet(driver):
    errors = driver.get_log('browser')
    fact('the console is empty', not errors, errors)
    sent = [json.loads(entry['message'])['message'] for entry in driver.get_log('performance')]
    asked = [message['params']['request']['url'] for message in sent
             if message['method'] == 'Network.requestWillBeSent' and message['params']['documentURL'] == url]
    fact('nothing was asked for but the page', asked == [url], asked)


for dark in (False, True):
    driver = start(dark, 900)
    try:
        look(driver)
        if not dark:
            act(driver)
        driver.set_window_size(1240, 1700)
        driver.save_screenshot(f'{shots}/diff_{"dark" if dark else "light"}.png')
        quiet(driver)
    finally:
        driver.quit()
sys.exit(bool(failures))
