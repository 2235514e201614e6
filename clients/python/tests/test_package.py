"""The package as it is installed."""

import importlib
import importlib.metadata
import pkgutil
import unittest
from pathlib import Path

import rapport_client
from rapport_client.models import Account, Status
from support import account, call, new_id


class Package(unittest.TestCase):
    def test_it_is_installed_with_types_and_licence(self) -> None:
        root = Path(rapport_client.__file__).parent
        self.assertIn("site-packages", root.parts)
        self.assertTrue((root / "py.typed").exists())
        metadata = importlib.metadata.metadata("rapport-client")
        self.assertEqual(metadata["Version"], rapport_client.__version__)
        self.assertEqual(metadata["License-Expression"], "MIT")
        self.assertEqual(metadata["License-File"], "LICENSE")

    def test_every_module_can_be_imported(self) -> None:
        names = [module.name for module in pkgutil.walk_packages(rapport_client.__path__, "rapport_client.")]
        self.assertIn("rapport_client.api.accounts.list_accounts", names)
        for name in names:
            importlib.import_module(name)

    def test_values_of_a_later_version_are_no_error(self) -> None:
        imported_id = new_id()
        call("POST", "/api/accounts/", {"name": "Nordlys", "imported_id": imported_id})
        later = Account.from_dict({**account(imported_id), "status": "on_hold", "mood": "sunny"})
        self.assertEqual((later.status, later["mood"]), ("on_hold", "sunny"))
        self.assertNotIn(later.status, list(Status))
        self.assertEqual(later.to_dict()["status"], "on_hold")
        self.assertIs(Status("lost"), Status.LOST)
        with self.assertRaises(ValueError):
            Status(7)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
