import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import org.sqlite.SQLiteConfig;

class Program {
    public static void main(String[] arguments) throws Exception {
        String extension = arguments[0], database = "jdbc:sqlite:" + arguments[1];

        // Once in a process, before the first database is opened.
        SQLiteConfig loading = new SQLiteConfig();
        loading.enableLoadExtension(true);
        try (Connection loader = loading.createConnection("jdbc:sqlite::memory:");
             PreparedStatement load = loader.prepareStatement("SELECT load_extension(?)")) {
            load.setString(1, extension);
            load.execute();
        }

        try (Connection db = DriverManager.getConnection(database); Statement create = db.createStatement()) {
            db.setAutoCommit(false);
            create.execute("CREATE TABLE IF NOT EXISTS note(writer TEXT, sqlite TEXT, text TEXT)");
            String insert = "INSERT INTO note VALUES('sqlite-jdbc', sqlite_version(), 'a text to be found ' || ?)";
            try (PreparedStatement statement = db.prepareStatement(insert)) {
                for (int number = 0; number < 1000; number++) {
                    statement.setInt(1, number);
                    statement.executeUpdate();
                }
            }
            db.commit();
        }

        String select = "SELECT writer, sqlite, count(*) FROM note GROUP BY writer, sqlite ORDER BY min(rowid)";
        try (Connection db = DriverManager.getConnection(database);
             Statement statement = db.createStatement();
             ResultSet rows = statement.executeQuery(select)) {
            while (rows.next()) {
                System.out.println(rows.getString(1) + " " + rows.getString(2) + " " + rows.getInt(3));
            }
        }
    }
}
