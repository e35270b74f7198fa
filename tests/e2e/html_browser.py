# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Drives the page of html.sh in headless Chromium: PAGE FOLDER. Screenshots are left in FOLDER, or in
$HTML_SHOTS if that is set. HTML_GPU is a page with GPU records, HTML_TWINS one of two functions of one name,
HTML_THIN one whose steps are not all drawn, HTML_THINNER one whose escalated steps are not all drawn; HTML_CASES
is a folder with pages of some golden cases."""
import hashlib
import json
import os
import sys

from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from browser import fact, failures, shots, start, url


def picture(driver, canvas):
    return hashlib.sha256(driver.execute_script(
        'return document.getElementById(arguments[0]).toDataURL()', canvas).encode()).hexdigest()


def drag(driver, canvas, first, last):
    box = canvas.rect
    to = lambda share: int(66 + share * (box['width'] - 74) - box['width'] / 2)
    ActionChains(driver).move_to_element_with_offset(canvas, to(first), 0).click_and_hold() \
        .move_to_element_with_offset(canvas, to(last), 0).release().perform()


def used(driver):
    """How many pixels of each canvas differ from its commonest one."""
    return driver.execute_script('''
        return [...document.querySelectorAll("canvas")].map((canvas) => {
            const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            let colored = 0;
            for (let i = 0; i < all.length; i += 4)
                colored += all[i + 3] > 200 && Math.max(all[i], all[i + 1], all[i + 2]) -
                    Math.min(all[i], all[i + 1], all[i + 2]) > 40;
            return [canvas.id, colored];
        });''')


def section(driver, heading):
    """The text of the part with that heading."""
    found = [h2.find_element(By.XPATH, '..').text for h2 in driver.find_elements(By.TAG_NAME, 'h2')
             if h2.text == heading]
    return found[0] if found else ''


def look(driver):
    driver.get(url)
    text = driver.find_element(By.TAG_NAME, 'body').text
    fact('the page has been drawn', driver.execute_script('return document.documentElement.dataset.ready') == '1',
         (driver.get_log('browser'), text[-300:]))
    fact('no name ran as a script', 'owned' not in driver.title, driver.title)
    fact('nor became an element', not driver.find_elements(By.CSS_SELECTOR, 'img, main b b, main i i, svg, iframe'))
    fact('but is shown as it is', '</script><script>document.title+=/owned/</script>' in text, text[:500])
    fact('the headline is there', text.count('steps of') >= 1 and 'lock contention' in text, text[:500])
    headings = [heading.text for heading in driver.find_elements(By.TAG_NAME, 'h2')]
    wanted = ['Why steps were slow', 'Every step', 'Percentiles over time', 'Where the time went',
              'How many steps took how long', 'Slowest steps', 'Classes of steps', 'Threads', 'System calls',
              'Can these numbers be trusted?']
    fact('all parts of the report are there', headings == wanted, headings)
    rows = {name: section(driver, name) for name in wanted}
    fact('the cause has its stack', 'in KvCache::take' in rows['Why steps were slow'], rows['Why steps were slow'])
    fact('two classes', all(f'n_tokens {span} 500 ' in rows['Classes of steps'] for span in ('4 to 7', '64 to 127')),
         rows['Classes of steps'])
    fact('two threads', '7 <i>t</i> yes 900 ms' in rows['Threads'] and '8 <b>w</b> 300 ms' in rows['Threads'],
         rows['Threads'])
    fact('no loss', 'No record was lost.' in rows['Can these numbers be trusted?'], rows['Can these numbers be trusted?'])
    for name, colored in used(driver):
        fact(f'{name} has marks', colored > 100, colored)


def act(driver):
    canvas = driver.find_element(By.ID, 'steps')
    whole = {name: picture(driver, name) for name in ('steps', 'quantiles', 'parts', 'heat')}
    drag(driver, canvas, 0.2, 0.3)
    zoomed = {name: picture(driver, name) for name in whole}
    fact('a drag zooms all charts', all(zoomed[name] != whole[name] for name in whole), zoomed)
    fact('and the range is told', driver.find_element(By.ID, 'range').text.startswith('10.2 s to 15.3 s'),
         driver.find_element(By.ID, 'range').text)
    ActionChains(driver).double_click(canvas).perform()
    fact('a double click undoes it', {name: picture(driver, name) for name in whole} == whole)
    driver.find_element(By.ID, 'log').click()
    fact('a linear scale is another picture', picture(driver, 'steps') != whole['steps'])
    driver.find_element(By.ID, 'log').click()

    row = driver.find_element(By.CSS_SELECTOR, '#slowest tr.pick')
    number = row.text.split()[0]
    row.click()
    fact('a click on a slow step shows it', driver.find_element(By.ID, 'range').text != '')
    box = canvas.rect
    for dy in range(-120, 120, 6):
        ActionChains(driver).move_to_element_with_offset(
            canvas, int(66 + 0.5 * (box['width'] - 74) - box['width'] / 2), dy).perform()
        tip = driver.find_element(By.ID, 'tip')
        if tip.is_displayed() and number in tip.text:
            break
    fact('its tip says why', number in tip.text and 'lock contention' in tip.text and '40.0 ms' in tip.text,
         (number, tip.text))
    driver.save_screenshot(f'{shots}/tip.png')
    canvas.send_keys(Keys.ESCAPE)
    fact('Escape shows the whole window', picture(driver, 'quantiles') == whole['quantiles'])

    cause = [b for b in driver.find_elements(By.CSS_SELECTOR, '#causes button') if 'lock' in b.text][0]
    before = picture(driver, 'steps')
    cause.click()
    fact('a cause can be hidden', picture(driver, 'steps') != before)
    kinds = driver.find_element(By.ID, 'kind')
    kinds.send_keys('embed')
    fact('the other step function has one step', '1' in driver.find_element(By.ID, 'cards').text.split('\n')[1],
         driver.find_element(By.ID, 'cards').text)


def greys(driver):
    """How many pixels of all charts are as light, or as dark, as only the lines of a light or a dark theme are."""
    return driver.execute_script('''
        let light = 0, dark = 0;
        for (const canvas of document.querySelectorAll("canvas")) {
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
            copy.drawImage(canvas, 0, 0);
            const all = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            for (let i = 0; i < all.length; i += 4) {
                const least = Math.min(all[i], all[i + 1], all[i + 2]);
                const most = Math.max(all[i], all[i + 1], all[i + 2]);
                const isGrey = all[i + 3] > 100 && most - least < 30;
                light += isGrey && least > 215;
                dark += isGrey && most < 75;
            }
        }
        return [light, dark];''')


def paper(driver):
    """Printed from a dark screen, and narrower than it."""
    light, dark = greys(driver)
    fact('on a dark screen the charts are dark', dark > 500 and light == 0, (light, dark))
    driver.execute_script('dispatchEvent(new Event("beforeprint"))')
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
        'media': 'print', 'features': [{'name': 'prefers-color-scheme', 'value': 'dark'}]})
    driver.execute_script('document.querySelector("main").style.width = "600px"')
    light, dark = greys(driver)
    fact('on paper they are light', light > 500 and dark == 0, (light, dark))
    colors = driver.execute_script('const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]')
    fact('as the rest of the page is', colors == ['rgb(29, 33, 41)', 'rgb(255, 255, 255)'], colors)
    shapes = driver.execute_script('''
        return [...document.querySelectorAll("canvas")].map((canvas) => {
            const box = canvas.getBoundingClientRect();
            return [box.width, box.height, canvas.width / canvas.height];
        });''')
    fact('and no chart is squashed', all(width < 601 and abs(width / height / shape - 1) < 0.02
                                         for width, height, shape in shapes), shapes)
    driver.save_screenshot(f'{shots}/paper.png')
    driver.execute_script('document.querySelector("main").style.width = ""')
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': '', 'features': []})
    driver.execute_script('dispatchEvent(new Event("afterprint"))')
    light, dark = greys(driver)
    fact('afterwards they are dark again', dark > 500 and light == 0, (light, dark))


def quiet(driver):
    errors = driver.get_log('browser')
    fact('the console is empty', not errors, errors)
    sent = [json.loads(entry['message'])['message'] for entry in driver.get_log('performance')]
    asked = [message['params']['request']['url'] for message in sent
             if message['method'] == 'Network.requestWillBeSent' and message['params']['documentURL'] == url]
    fact('the page was asked for', asked[:1] == [url], asked)
    asked = asked[1:]
    fact('nothing was asked for but the page', not asked, asked)


def gpu(driver):
    driver.get('file://' + os.environ['HTML_GPU'])
    legend = driver.find_element(By.ID, 'part-legend').text
    fact('GPU records: the line of the busy GPU is told', 'line: GPU busy 47.7 %' in legend, legend)
    drawn = picture(driver, 'parts')
    driver.execute_script('CanvasRenderingContext2D.prototype.stroke = () => {}; dispatchEvent(new Event("resize"))')
    fact('and drawn', picture(driver, 'parts') != drawn)
    text = driver.find_element(By.TAG_NAME, 'body').text
    fact('what the GPU waited for is a table', 'GPU in steps' in text and '47.7 % 45.7 % 4.0 % 2.6 % 0.0 %' in text,
         text[text.find('GPU in'):][:300])
    errors = driver.get_log('browser')
    fact('without an error', not errors, errors)


def twins(driver):
    driver.get('file://' + os.environ['HTML_TWINS'])
    figures = {}
    for option in driver.find_elements(By.CSS_SELECTOR, '#kind option'):
        option.click()
        cards = driver.find_element(By.ID, 'cards').text.split('\n')
        figures[option.text] = (cards[1], cards[5])
    fact('two functions of one name have a label each',
         set(figures) == {'llama_decode (/usr/lib/libllama.so)', 'llama_decode (/opt/canary/libllama.so)'}, figures)
    fact('and figures of their own', sorted(figures.values()) == [('100', '7.00 ms'), ('300', '1.00 ms')], figures)
    errors = driver.get_log('browser')
    fact('both without an error', not errors, errors)


def thinned(driver):
    driver.get('file://' + os.environ['HTML_THIN'])
    text = section(driver, 'Every step')
    fact('of many steps all escalated ones are drawn', 'are drawn: the escalated ones, and of 4 others' in text, text)
    driver.get('file://' + os.environ['HTML_THINNER'])
    text = section(driver, 'Every step')
    fact('of many escalated steps the first ones', 'are drawn: the first 15 escalated ones, and of 4 others' in text, text)


def case(driver, name):
    driver.get(f'file://{os.environ["HTML_CASES"]}/{name}.html')
    errors = driver.get_log('browser')
    fact(f'{name}: the console is empty', not errors, errors)
    shown = driver.find_element(By.TAG_NAME, 'body').text
    wrong = [word for word in ('NaN', 'undefined', 'Infinity') if word in shown]
    fact(f'{name}: no figure is nonsense', not wrong, (wrong, shown))


def hangs(driver):
    case(driver, 'hang_looks')
    said = [p.text for p in driver.find_elements(By.CSS_SELECTOR, '#verdict p')]
    fact('a hang is a line of the verdict, which ends before its threads',
         said[1].startswith('! hang: llama_decode') and said[1].endswith('read for 9.00 s in KvCache::evict'), said)
    text = section(driver, 'Hangs')
    fact('what hangs is said in full', 'in futex for 9.99 s, lock at 0x7fc70b3680c8, held by thread 8 "kv-evict"' in text,
         text)
    for row in ('thread 7 "engine" futex for 9.99 s Cache::take <- llama_decode',
                '12 threads (9, …) "pool" futex for 20.0 s Pool::wait <- Pool::run', 'thread 30 "spin" on a CPU near spin',
                '2 threads (31, …) waiting for a CPU Pool::wait <- Pool::run', 'thread 35 stopped', 'thread 37 read'):
        fact(f'and so is {row[:12]}', row in text.replace('\n', ' '), text)
    fact('threads in no group are counted', '2 more threads' in text, text)
    fact('a hang without a look has no table', len(driver.find_elements(By.CSS_SELECTOR, '#hangs table')) == 1)
    driver.save_screenshot(f'{shots}/hang.png')
    case(driver, 'hang')
    said = [p.text for p in driver.find_elements(By.CSS_SELECTOR, '#verdict p')]
    fact('a hang that ended says so in a line of its own', 'it ended after 11.0 s: step #13' in said, said)


def reasons(driver):
    """What the table of causes says under the evidence."""
    for name, wanted in (
            ('looks', 'meanwhile thread 9 "bad\\x1b[1m" in read for 9.00 ms: KvCache::evict_sleep'),
            ('scripts', 'held in time_sleep <- tokenize (text.py:31)'),
            ('explained', 'taken by, of the 640 ms that were seen: its own threads 22.2 %, stress-ng (pid 4711, cgroup '
             '/system.slice/load.service) 18.3 %, many processes of cgroup /ci.slice/build.scope 14.1 %, cc1 (several processes) '
             '11.7 %'),
            ('explained', 'nobody (the CPU was idle) 17.2 %'), ('explained', 'not known in 2 of 7 steps'),
            ('woken', 'woken by feeder (pid 81) in 1 step, perhaps re'),
            ('grown', 'grew: std::vector::resize 227 ms in 2 steps, gemm_f32 86.7 ms in 1 step')):
        case(driver, name)
        text = section(driver, 'Why steps were slow')
        fact(f'{name}: {wanted[:20]}', wanted in text, text)
        driver.save_screenshot(f'{shots}/{name}.png')


def probes(driver):
    """Without system calls there is nothing of them, not even 0."""
    case(driver, 'probes')
    text = section(driver, 'Threads')
    fact('probes: threads without calls', '7 engine yes 500 ms 1.00 ms' in text and 'calls' not in text, text)
    text = section(driver, 'Can these numbers be trusted?')
    fact('probes: what a step costs', 'A traced step costs up to 3.00 us: ' in text and
         'System calls cost nothing, as none is traced.' in text, text)


def sampled(driver):
    """4 steps in the 20 ms of 1 s in which the probes were on."""
    case(driver, 'async_sampled')
    cards = driver.find_element(By.ID, 'cards').text.split('\n')
    fact('sampled: the rate is that of the time with probes',
         cards[2:4] == ['steps per second (seen in 2.0 % of the time)', '200'], cards)
    text = section(driver, 'Can these numbers be trusted?')
    fact('sampled: and it is said', 'are sampled, 2.0 % of the time: counts, sums and gaps do not cover' in text, text)


def trust(driver):
    """What the page says of figures that do not cover everything."""
    case(driver, 'lost')
    text = section(driver, 'Can these numbers be trusted?')
    for wanted in ('Lost 3 calls: missing from the trace, but counted.', 'Lost 1 steps: missing from all step figures.',
                   'Lost 4 threads: not traced, nothing of them is counted.',
                   'Lost 5 step begins: on threads that are not traced.',
                   'Lost 6 processes: not traced, nothing of them is counted.', 'were not seen: up to 2.'):
        fact(f'lost: {wanted[:14]}', wanted in text, text)
    fact('lost: nothing is said to be exact', 'exact' not in text and 'No record was lost' not in text, text)
    case(driver, 'gpu_late')
    text = section(driver, 'Can these numbers be trusted?')
    fact('lost GPU records are told', 'Lost 3 GPU records of process 7' in text and 'No record was lost' not in text,
         text)


for dark in (False, True):
    driver = start(dark, 1600)
    try:
        look(driver)
        if dark:
            paper(driver)
        else:
            act(driver)
        driver.set_window_size(1240, 2600)
        driver.save_screenshot(f'{shots}/{"dark" if dark else "light"}.png')
        quiet(driver)
        if not dark:
            gpu(driver)
            twins(driver)
            thinned(driver)
            hangs(driver)
            reasons(driver)
            probes(driver)
            sampled(driver)
            trust(driver)
    finally:
        driver.quit()
sys.exit(bool(failures))
