"""The words that the memories of the benchmarks are made of, the most frequent ones first."""

WORDS = tuple(
    """
    the to of and a in for on is with that was we user by from this are be it as has at not new they
    project wants before after when team asked about should meeting report because using prefers
    needs data can only changed each will plan next customer version last week review agreed release
    still open until issue without answer service later today page more request one message same work
    every first again test order under notes two over email invoice list their late morning date
    support account error summary decided budget design moved contract server office question draft
    update check local table monthly login cannot train during price search phone key
    travel ticket model deadline client former shared weekly folder missing export access old market
    reply small partner format sales limit short deploy backup library address payment feature print
    reader correct season metric window planned branch training remote region summer hotel record
    editor script upload manager simple screen german holiday secret memory public agent quarter
    lesson tomorrow delay language number garden written kitchen doctor evening winter
    airport station library bicycle allergy coffee vegetarian piano chess daughter brother birthday
    museum concert recipe insurance passport visa rental mortgage pension harbour bridge river
    mountain forest weather signal battery antenna protocol latency throughput cluster replica shard
    schema migration index cursor transaction snapshot checkpoint rollback deployment container
    gateway firewall certificate token session cookie header payload parser compiler linker debugger
    profiler scheduler semaphore mutex barrier pipeline queue broker consumer producer partition
    warehouse dashboard forecast variance median outlier cohort survey campaign banner slogan mascot
    auditor ledger receipt refund discount voucher subsidy tariff customs freight pallet forklift
    conveyor turbine compressor gasket bearing piston gearbox axle chassis bumper windshield
    """.split()  # noqa: SIM905 - three hundred words in a list fill a page
)

KINDS = ("fact", "decision", "preference", "task", "event", "contact", "summary", "feedback")
"""The tag that says what a memory is: each memory has one of these."""

TOPICS = tuple(f"topic-{number:03}" for number in range(192))
"""The other tags: each memory has two of these. With the kinds there are 200."""

BIRDS = ("kestrel", "heron", "plover", "siskin", "avocet", "godwit", "merlin", "osprey")
"""With a number behind it, the name of one project: a rare word."""

SOURCES = ("chat", "mail", "call", "document", "calendar", "import")
