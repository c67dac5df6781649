import pytest

pytest_plugins = ["pytester"]

TESTS = """
from adapter_conformance.plugin import conformance_tests

conformance = conformance_tests({})
"""

HARNESSES = """
from adapter_template import TemplateMemoryStore
from adapter_template.harness import TemplateHarness

class Liar(TemplateMemoryStore):
    @property
    def manifest(self):
        return super().manifest.model_copy(update={"retrieve_fidelity": "native_fields"})

class Lying(TemplateHarness):
    async def make_store_with(self, **options):
        return Liar(self.service, **options)

class Broken(TemplateHarness):
    async def close(self):
        raise OSError("disk full")

class Missing(TemplateHarness):
    environment = "embedded"
    asked = 0

    def __init__(self):
        raise AssertionError("must not be made")

    @classmethod
    def not_run_reason(cls):
        cls.asked += 1
        assert cls.asked == 1
        return "no wheel for this platform"

class Live(TemplateHarness):
    environment = "live"
    container = None

    def __init__(self, url):
        super().__init__()
        assert url == "stub://one"
"""


@pytest.fixture
def conformance(pytester, monkeypatch):
    """Run a module with the tests of the given harnesses in a pytest of its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(made_harnesses=HARNESSES)
    pytester.syspathinsert()

    def run(harnesses, *arguments, plugins=("adapter_conformance.plugin",), imports=""):
        pytester.makepyfile(test_mine=imports + TESTS.format(harnesses))
        chosen = [part for plugin in plugins for part in ("-p", plugin)]
        return pytester.runpytest_subprocess("-W", "error", *chosen, *arguments)

    return run


def test_one_item_for_each_case_and_harness(conformance) -> None:
    found = conformance("'template-lossy', 'template-tagless'", "--collect-only", "-q")
    names = [line for line in found.outlines if "::" in line]
    assert names[0] == "test_mine.py::C01-surface[template-lossy-fake]"
    assert "test_mine.py::C08-limit[template-lossy-fake]" in names
    assert "test_mine.py::C17-accuracy[template-tagless-fake]" in names
    assert sum("::C" in name for name in names) == 2 * 17
    assert len(set(names)) == len(names)


def test_all_cases_run_and_those_not_staged_are_skipped_with_their_reason(conformance) -> None:
    found = conformance("'template-lossy'", "-rs", "-v")
    outcomes = found.parseoutcomes()
    assert outcomes["skipped"] == 2
    assert set(outcomes) == {"passed", "skipped"}
    found.stdout.fnmatch_lines(["*::C17-accuracy?template-lossy-fake? PASSED*"])
    found.stdout.fnmatch_lines(["SKIPPED*not staged: a dictionary has no capability that could go away"])


def test_k_and_node_ids_select(conformance) -> None:
    conformance("'template-lossy'", "-k", "C08").assert_outcomes(passed=1, deselected=30)
    conformance("'template-lossy'", "test_mine.py::C08-limit[template-lossy-fake]").assert_outcomes(passed=1)


def test_failure_shows_the_reason_and_the_drift_and_no_traceback(conformance) -> None:
    found = conformance("Lying", "-k", "C03", imports="from made_harnesses import Lying\n")
    found.assert_outcomes(failed=1, deselected=30)
    found.stdout.fnmatch_lines(
        [
            "*_ C03-retrieval?template-fake? _*",
            "template on fake fails C03, direct retrieval: *",
            "manifest field retrieve_fidelity: declared native_fields, observed full",
            "FAILED test_mine.py::C03-retrieval?template-fake?*",
        ]
    )
    found.stdout.no_fnmatch_line("*Traceback*")
    found.stdout.no_fnmatch_line("*plugin.py*")


def test_fault_of_the_harness_is_not_blamed_on_the_adapter(conformance) -> None:
    found = conformance("Broken", "-k", "C02", imports="from made_harnesses import Broken\n")
    found.assert_outcomes(failed=1, deselected=30)
    found.stdout.fnmatch_lines(
        ["template on fake: the harness failed, not the adapter: OSError (made_harnesses.py, line *)"]
    )


def test_harness_that_cannot_run_here_is_skipped_and_asked_once(conformance) -> None:
    found = conformance("Missing", "-rs", imports="from made_harnesses import Missing\n")
    assert set(found.parseoutcomes()) == {"skipped"}
    found.stdout.fnmatch_lines(["SKIPPED*not run: no wheel for this platform"])


def test_live_harness_gets_its_server_which_goes_when_pytest_ends(conformance, pytester, monkeypatch) -> None:
    pytester.makeconftest(
        """
        from adapter_conformance import plugin

        class Servers(plugin.Servers):
            def close(self):
                super().close()
                print("the servers are closed")

        plugin.Servers = Servers
        """
    )
    live = ("Live", "-k", "C02 or C08", "-rs")
    found = conformance(*live, imports="from made_harnesses import Live\n")
    found.assert_outcomes(skipped=2, deselected=29)
    found.stdout.fnmatch_lines(["SKIPPED*not run: ADAPTER_TEMPLATE_URL is not given"])
    monkeypatch.setenv("ADAPTER_TEMPLATE_URL", "stub://one")
    found = conformance(*live, imports="from made_harnesses import Live\n")
    found.assert_outcomes(passed=2, deselected=29)
    assert found.outlines.count("the servers are closed") == 1


@pytest.mark.parametrize(
    ("harnesses", "message"),
    [
        ("'nobody'", "no harness for 'nobody' is installed*"),
        ("'template', environments=('live',)", "no harness runs in live"),
        ("3", "3 is not a harness class with a known environment"),
    ],
)
def test_wrong_use_is_an_error_of_the_collection(conformance, harnesses, message) -> None:
    found = conformance(harnesses)
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines([message])
    found.stdout.no_fnmatch_line("*Traceback*")


def test_no_harness_named_is_a_type_error(conformance) -> None:
    found = conformance("")
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(["*needs the name of an adapter or a harness class"])


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_it_lives_beside_pytest_asyncio(conformance, pytester, mode) -> None:
    pytester.makeini(
        f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = session\n"
        "asyncio_default_test_loop_scope = session\n"
    )
    pytester.makepyfile(
        test_first="""
        import asyncio, pytest

        @pytest.mark.asyncio
        async def test_before():
            await asyncio.sleep(0)
        """,
        test_other="""
        import asyncio, pytest

        @pytest.mark.asyncio
        async def test_after():
            await asyncio.sleep(0)
        """,
    )
    plugins = ("pytest_asyncio.plugin", "adapter_conformance.plugin")
    found = conformance("'template-lossy'", "-k", "C08 or test_before or test_after", plugins=plugins)
    found.assert_outcomes(passed=3, deselected=30)


def test_plugin_is_inert_elsewhere(conformance, pytester) -> None:
    pytester.makepyfile(
        test_plain="def test_plain(request):\n    assert request.fixturenames == ['request']\n"
    )
    found = pytester.runpytest_subprocess("-p", "adapter_conformance.plugin", "test_plain.py")
    found.assert_outcomes(passed=1)
