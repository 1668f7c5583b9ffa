-- The role and the database of cambist, once: sudo -u postgres psql -f database.sql
CREATE ROLE cambist LOGIN PASSWORD '${cambist_password}';
CREATE DATABASE cambist OWNER cambist;
