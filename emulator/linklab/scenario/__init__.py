"""Scenarios: what a run emulates, read from YAML and checked down to the line.

A scenario is the single description of a run that both places, host and guest, and the
oracle work from. Whatever is wrong with a file is said as one ScenarioError:

    profiles/x.yaml:12: links.wifi.down: '80' has no unit; allowed: a rate such as '80 Mbit/s'

The form of the file (keys marked * are needed, the others show their defaults):

    name*: wifi-outage            # the file's name without .yaml
    title: ''                     # one line
    description: ''
    source: ''                    # where the figures come from
    payload*: {size*: 100 MB, seed: 1, sha256: …}
    links*:                       # one to eight, of any names
      wifi:
        kind: wifi                # or lte; needed unless the link is called so
        down*: 60 Mbit/s          # rates on the wire; with models, what these start from
        up*: 20 Mbit/s
        rtt*: 10 ms
        jitter: 0 s
        loss: 0 %                 # downlink
        loss_burst: 1             # mean packets lost in a row; 1: independent
        queue: …                  # both directions; or queue_down, queue_up
        bandwidth: …              # B of the algorithms; 1.3 times down
        between_runs: 0 %         # standard deviation of the rates from run to run
        trace: {file*: lte-driving, rate: scaled, start: 0 s, end: loop}
                                  # a name in profiles/traces or a path beside this file;
                                  # scaled: down and up are its means, or recorded;
                                  # start: a time or random; end: loop, hold or stop
        on_off: {rate*: 1 Mbit/s, on: 40 s, off: 40 s}   # off, at most this; random times
        radio:                    # of kind wifi only: the rates become upper limits
          standard*: ac           # g, n, ac
          width: 20 MHz
          streams: 1
          cell: pure              # mixed: 802.11g shared with 802.11b
          access_points*: [{name*: ap1, x: 0 m, y: 0 m}, {name*: ap2, signal: -60 dBm}]
          path: [{at*: 0 s, x: 0 m, y: 0 m}]
          handover: reassociation # fast-transition, full-scan, full-scan-dhcp
          hysteresis: 6 dB
          power: 17 dBm           # with loss_1m: 47 dB and exponent: 3.5 the path loss
          loss: 0.1 %             # edge_loss: 1 % below edge_snr: 9 dB; loss_burst: 2
        stations: {count*: 2, begins: 0.025 /s, ends: 0.05 /s}   # others on the channel
      lte:
        …                         # as wifi, and of kind lte only, instead of radio and stations:
        carriers: {count*: 3, first: 40 %, delay: 2.5 s, sigma: 0.3, slow: 10 %, never: 0 %,
                   trigger: 9 kB, trigger_time: 50 ms, idle: 1.28 s, key: device}
        rrc: {promotion: 260 ms, inactivity: 100 ms, drx_cycle: 40 ms, tail: 11.2 s}
    events:                       # in time order for each link; what is left out stays
      # at a time or after so many bytes of payload, for good or for a while (`for`)
      - {at: 2 s, link*: wifi, for: 3 s, carrier: down, down: …, up: …, rtt: …, jitter: …,
         loss: …}                 # sets these
      - {after: 50 MB, link*: lte, fade: 40 %, cap: …, cross: …, outage: true}
                                  # rates left, at most, taken by others; all lost unannounced
      - {at: 9 s, link*: wifi, handover: ap2}   # or next
    step: 20 ms                   # how often models that follow load or movement are asked
    sample: 500 ms                # how often the queues' counters are written down
    tcp: {congestion_control: cubic, rmem_max: 16 MiB, wmem_max: 16 MiB, metrics_save: false,
          mptcp: false}
    client: {upper_limit: 1.2 MB, padding: 10 %, overlap: 60 %, window: 1 s, first_request: 1 MB}
    published:
      - {algorithm*: alg3, download*: 16.55 s, link_delta: 0.5 s, source: thesis table 5.12}
                                  # spread: the rates' standard deviation over their median
    findings:                     # whatever else was published, in words
      - {what*: energy of eMPTCP against MPTCP, value*: -8 %, source: 'eMPTCP 4.3'}

YAML anchors, aliases and merge keys work; a key given twice is refused, and so is a file that
stands for more than a scenario can need (`document.py`).
"""

from linklab.scenario.finding import find, list_all, load, names_in
from linklab.scenario.reading import parse
from linklab.scenario.settings import (
    MAX_QUEUE_BYTES,
    SAMPLE_S,
    ClientSettings,
    Finding,
    LinkSettings,
    Payload,
    Published,
    Scenario,
    TcpSettings,
    default_bandwidth_bps,
    default_queue_bytes,
)
from linklab.scenario.writing import to_yaml
from linklab.schema.document import ScenarioError

__all__ = [
    "MAX_QUEUE_BYTES", "SAMPLE_S", "ClientSettings", "Finding", "LinkSettings",
    "Payload", "Published", "Scenario", "ScenarioError", "TcpSettings",
    "default_bandwidth_bps", "default_queue_bytes", "find", "list_all", "load", "names_in",
    "parse", "to_yaml",
]  # fmt: skip
